//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bootTimeout is the longest a node may take to start all its units.
const bootTimeout = 90 * time.Second

// Node is one machine of the lab.
type Node struct {
	Name string
	IP   netip.Addr
	Spec NodeSpec

	lab    *Lab
	record nodeRecord

	mu   sync.Mutex
	init processID // the node's systemd, as the host sees it
}

// AddNode boots a further node and waits until it is up.
func (l *Lab) AddNode(ctx context.Context, spec NodeSpec) (*Node, error) {
	if err := spec.complete(l.state.Generation); err != nil {
		return nil, err
	}
	if err := Setup(ctx, Config{Name: l.state.Name, Nodes: []NodeSpec{spec}, Progress: l.progress}); err != nil {
		return nil, err
	}
	r, err := l.state.addNode(spec)
	if err != nil {
		return nil, err
	}
	return l.startNode(ctx, spec, r)
}

func (l *Lab) startNode(ctx context.Context, spec NodeSpec, r nodeRecord) (*Node, error) {
	n := &Node{Name: r.Name, IP: l.state.nodeAddr(r), Spec: spec, lab: l, record: r}
	if err := n.mountRoot(); err != nil {
		return nil, err
	}
	if err := l.makeNodeNetwork(ctx, r); err != nil {
		return nil, err
	}
	if err := n.prepare(); err != nil {
		return nil, fmt.Errorf("preparing node %q: %w", n.Name, err)
	}
	if spec.Prepare != nil {
		if err := spec.Prepare(n.Root()); err != nil {
			return nil, fmt.Errorf("preparing node %q: %w", n.Name, err)
		}
	}
	began := time.Now()
	if err := n.boot(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.nodes[n.Name] = n
	l.mu.Unlock()
	l.say("node %s (%s, %s) booted in %.1f s", n.Name, spec.Generation, n.IP, time.Since(began).Seconds())
	return n, nil
}

func (n *Node) dir(elem ...string) string {
	return n.lab.state.path(append([]string{"nodes", n.Name}, elem...)...)
}

// Root is the host path of the node's root file system. What the node mounts
// inside it (/run, /tmp, /proc) is not seen there; for that see [Node.Live].
func (n *Node) Root() string { return n.dir("root") }

// Live is the host path of the running node's file system with everything it
// mounts. Absolute symbolic links below it are followed on the host.
func (n *Node) Live() string { return fmt.Sprintf("/proc/%d/root", n.PID()) }

// PID is the host's number of the node's systemd.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.init.PID
}

// unit names the node's processes in logs and records.
func (n *Node) unit() string { return "node-" + n.Name }

// machineName is unique on the host: nspawn locks by it.
func machineName(s *state, r nodeRecord) string { return s.nodeNS(r) }

// stores are the folders that lie on a plain file system, because the runtimes
// put overlay mounts on them and overlayfs does not stack.
func stores() []string { return []string{"containerd", "docker"} }

func (n *Node) mountRoot() error {
	lower, err := rootPath(n.record.Generation, n.record.Full)
	if err != nil {
		return err
	}
	for _, d := range append([]string{"root", "upper", "work"}, stores()...) {
		if err := os.MkdirAll(n.dir(d), 0o755); err != nil {
			return fmt.Errorf("creating the folders of node %q: %w", n.Name, err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, n.dir("upper"), n.dir("work"))
	if err := unix.Mount("overlay", n.Root(), "overlay", 0, options); err != nil {
		return fmt.Errorf("mounting the root of node %q (%s): %w", n.Name, options, err)
	}
	return nil
}

// boot starts nspawn and waits until the node's systemd has started everything.
func (n *Node) boot(ctx context.Context) error {
	groups, err := makeCgroups(machineName(n.lab.state, n.record))
	if err != nil {
		return err
	}
	spawn := []string{
		"systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot",
		"--machine=" + machineName(n.lab.state, n.record), "--hostname=" + n.Name,
		"--capability=all",
		// Without the keyring calls runc cannot join a session keyring and
		// starts no container.
		"--system-call-filter=@keyring bpf",
		"--network-namespace-path=" + nsPath(n.lab.state.nodeNS(n.record)),
		"--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=read-only",
		"--directory=" + n.Root(),
	}
	for _, s := range stores() {
		spawn = append(spawn, "--bind="+n.dir(s)+":/var/lib/"+s)
	}
	env := []string{"LAB_CGROUPS=" + strings.Join(groups, " ")}
	if n.record.Generation == Sid {
		env = append(env, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1") // its systemd refuses cgroup v1
	}
	// nspawn makes its cgroups where it is itself, so a shell enters first.
	const enter = `for g in $LAB_CGROUPS; do echo $$ >"$g/cgroup.procs" || exit 1; done; unset LAB_CGROUPS; exec "$@"`
	id, err := n.lab.startService(serviceSpec{name: n.unit(), env: env, argv: append([]string{"sh", "-c", enter, "sh"}, spawn...)})
	if err != nil {
		return err
	}
	return n.awaitBoot(ctx, id)
}

func (n *Node) awaitBoot(ctx context.Context, nspawn processID) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	err := eventually(ctx, bootTimeout, fmt.Sprintf("booting node %q", n.Name), func() error {
		if !nspawn.alive() {
			cancel()
			return errors.New("systemd-nspawn ended")
		}
		return n.findInit(nspawn)
	})
	if err != nil {
		return fmt.Errorf("%w%s", err, n.lab.logTail(n.unit()))
	}
	// The exit code tells "degraded" too, which a failed unit of a test may
	// cause and which is no reason to give up.
	r, err := n.Exec(ctx, "systemctl", "is-system-running", "--wait")
	if err != nil {
		return fmt.Errorf("booting node %q: %w%s", n.Name, err, n.lab.logTail(n.unit()))
	}
	switch word := strings.TrimSpace(string(r.Stdout)); word {
	case "running", "degraded":
		return nil
	default:
		return fmt.Errorf("booting node %q: systemd says %q: %s%s", n.Name, word, r.Stderr, n.lab.logTail(n.unit()))
	}
}

// findInit finds the systemd below nspawn once it answers.
func (n *Node) findInit(nspawn processID) error {
	for _, pid := range children(nspawn.PID) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/run/systemd/private", pid)); err != nil {
			continue
		}
		if !isInit(pid) {
			continue
		}
		id, err := identify(pid)
		if err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.init = id
		return n.lab.state.setProcess(n.unit()+"-init", id)
	}
	return errors.New("its systemd does not answer yet")
}

// isInit says whether the process is number 1 of a PID namespace of its own.
func isInit(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			numbers := strings.Fields(rest)
			return len(numbers) == 2 && numbers[1] == "1"
		}
	}
	return false
}

// Reboot restarts the node as `systemctl reboot` does on a machine and waits
// until it is up again: its /run is new, its files and its address are kept.
func (n *Node) Reboot(ctx context.Context) error {
	nspawn, ok := n.lab.state.process(n.unit())
	if !ok {
		return fmt.Errorf("rebooting node %q: it never booted", n.Name)
	}
	n.mu.Lock()
	init := n.init
	n.mu.Unlock()
	if r, err := n.Exec(ctx, "systemctl", "reboot"); err != nil {
		return fmt.Errorf("rebooting node %q: %w", n.Name, err)
	} else if r.ExitCode != 0 && init.alive() {
		return fmt.Errorf("rebooting node %q: exit code %d: %s", n.Name, r.ExitCode, r.Stderr)
	}
	// nspawn ends, with status 133, and is started anew for the second boot.
	err := eventually(ctx, bootTimeout, fmt.Sprintf("waiting for node %q to go down", n.Name), func() error {
		if nspawn.alive() || init.alive() {
			return errors.New("it still runs")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.boot(ctx)
}

// removeNodeTraces removes what nspawn and the kernel keep of a node that ended.
func removeNodeTraces(s *state, r nodeRecord) error {
	name := machineName(s, r)
	const kept = "/run/systemd/nspawn"
	traces := []string{filepath.Join(kept, "propagate", name), filepath.Join(kept, "unix-export", name)}
	var root unix.Stat_t
	if err := unix.Stat(s.path("nodes", r.Name, "root"), &root); err == nil {
		// nspawn locks a root by its inode; killed, it leaves the lock file.
		traces = append(traces, filepath.Join(kept, "locks", fmt.Sprintf("inode-%d:%d", root.Dev, root.Ino)))
	}
	for _, t := range traces {
		if err := os.RemoveAll(t); err != nil {
			return fmt.Errorf("removing what nspawn left of node %q: %w", r.Name, err)
		}
	}
	return removeCgroups(name)
}
