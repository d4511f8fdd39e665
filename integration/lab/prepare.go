//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// containerdConfig is version 2 of the format, which 1.6, 1.7 and 2.x read.
// restrict_oom_score_adj and disable_apparmor let containers start on a host
// that lacks CAP_SYS_RESOURCE or AppArmor's tools.
const containerdConfig = `version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
`

// dockerConfig keeps dockerd away from the network that the lab has set up.
const dockerConfig = `{"iptables":false,"ip6tables":false,"ip-forward":false,"bridge":"none","storage-driver":"overlay2"}
`

// machineUnit runs machineScript before anything that starts containers.
const machineUnit = `[Unit]
Description=Stand in for what a machine has and a namespace lacks
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/lib/lab/machine
`

// machineScript makes the cgroups of version 1 writable, which nspawn mounts
// read-only and under which runc makes its own; gives the kubelet a kernel log;
// and shows it the kernel settings it wants, so that it leaves the host's alone.
const machineScript = `#!/bin/sh
set -eu
for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do
	if mountpoint -q "$dir"; then mount -o remount,rw,bind "$dir"; fi
done
if ! [ -e /dev/kmsg ]; then ln -s /dev/console /dev/kmsg; fi
while read -r key value; do
	file=/run/lab/sysctl/$key
	mkdir -p "${file%/*}"
	echo "$value" >"$file"
	mount --bind "$file" "/proc/sys/$key"
done <<EOF
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
EOF
`

// prepare writes what a node needs before its first boot.
func (n *Node) prepare() error {
	s := n.lab.state
	bundle, err := os.ReadFile(filepath.Join(n.Root(), "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		return fmt.Errorf("reading the root's trust store: %w", err)
	}
	files := map[string][]byte{
		"etc/hostname":                                      []byte(n.Name + "\n"),
		"etc/hosts":                                         []byte(hostsFile(n.Name, s.corporateHosts())),
		"etc/resolv.conf":                                   nil,
		"etc/locale.conf":                                   []byte("LANG=C.UTF-8\n"),
		"etc/systemd/system/lab-machine.service":            []byte(machineUnit),
		"usr/local/lib/lab/machine":                         []byte(machineScript),
		"etc/containerd/config.toml":                        fmt.Appendf(nil, containerdConfig, n.lab.PauseRef()),
		"etc/ssl/certs/proxyward-lab.pem":                   n.lab.CA(),
		"usr/local/share/ca-certificates/proxyward-lab.crt": n.lab.CA(),
		"etc/ssl/certs/ca-certificates.crt":                 slices.Concat(bundle, n.lab.CA()),
	}
	if n.record.Full {
		files["etc/docker/daemon.json"] = []byte(dockerConfig)
	}
	for path, content := range files {
		if err := writeBelow(n.Root(), path, content); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(n.Root(), "etc/containerd/certs.d"), 0o755); err != nil {
		return fmt.Errorf("creating a folder: %w", err)
	}
	if err := os.Remove(filepath.Join(n.Root(), "etc/machine-id")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the machine ID, so that each node gets its own: %w", err)
	}
	if err := os.Chmod(filepath.Join(n.Root(), "usr/local/lib/lab/machine"), 0o755); err != nil {
		return fmt.Errorf("making the machine script executable: %w", err)
	}
	wants := filepath.Join(n.Root(), "etc/systemd/system/sysinit.target.wants/lab-machine.service")
	if err := os.Symlink("../lab-machine.service", wants); err != nil {
		return fmt.Errorf("enabling the machine script: %w", err)
	}
	return n.maskUnits()
}

// maskUnits keeps away what has no use in the lab or would change its network.
func (n *Node) maskUnits() error {
	units := []string{
		"systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service",
		"console-getty.service", "systemd-firstboot.service",
		"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer",
	}
	if n.record.Full && !n.record.Docker {
		units = append(units, "docker.service", "docker.socket")
	}
	for _, u := range units {
		link := filepath.Join(n.Root(), "etc/systemd/system", u)
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("masking %q: %w", u, err)
		}
		if err := os.Symlink("/dev/null", link); err != nil {
			return fmt.Errorf("masking %q: %w", u, err)
		}
	}
	return nil
}

// writeBelow replaces a file of a root that is not running. A link there would
// lead out of it, so it is removed first.
func writeBelow(root, path string, content []byte) error {
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return fmt.Errorf("creating the folder of %q: %w", path, err)
	}
	if err := os.Remove(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replacing %q: %w", path, err)
	}
	if err := os.WriteFile(full, content, 0o644); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	return nil
}
