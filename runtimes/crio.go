package runtimes

import (
	"fmt"
	"path"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// crio is the adapter of CRI-O. It takes its proxy from the environment alone.
type crio struct{}

func (crio) Target() v1alpha1.Target { return v1alpha1.TargetCRIO }
func (crio) Units() []string         { return []string{"crio.service", "cri-o.service"} }
func (crio) Experimental() bool      { return true }

// Defaults of CRI-O (crio.conf(5)).
const (
	crioConfig      = "/etc/crio/crio.conf"
	crioConfigDir   = "/etc/crio/crio.conf.d"
	crioSocket      = "/run/crio/crio.sock"
	crioVersionFile = "/run/crio/version"
)

// crioSettings are merged over the files: a key that a later file does not have keeps its value.
type crioSettings struct {
	Crio struct {
		VersionFile  *string `toml:"version_file"`
		InternalWipe *bool   `toml:"internal_wipe"`
		API          struct {
			Listen *string `toml:"listen"`
		} `toml:"api"`
		Runtime struct {
			CgroupManager *string `toml:"cgroup_manager"`
			ConmonCgroup  *string `toml:"conmon_cgroup"`
		} `toml:"runtime"`
	} `toml:"crio"`
}

// Inspect reads crio.conf with its drop-ins, and the registries.
func (crio) Inspect(host HostFS, name string) (Runtime, error) {
	u, err := FindUnit(host, name)
	if err != nil {
		return Runtime{}, err
	}
	if u == nil {
		return Runtime{}, missing(name)
	}
	words := u.command(u.Environment(host))
	cfg, files, err := readCrioConfig(host, words)
	if err != nil {
		return Runtime{}, err
	}
	out := Runtime{
		Target: v1alpha1.TargetCRIO, Unit: name, API: PullByCRI, Config: files,
		Socket: orDefault(cfg.Crio.API.Listen, crioSocket),
	}
	if v, found := flag(words, "listen"); found {
		out.Socket = v
	}
	out.Socket = strings.TrimPrefix(out.Socket, "unix://")
	if out.Restart, err = crioRestart(host, u, cfg); err != nil {
		return Runtime{}, err
	}
	lists, files, err := readRegistries(host)
	if err != nil {
		return Runtime{}, err
	}
	out.Hosts, out.Config = lists, append(out.Config, files...)
	return out, nil
}

func readCrioConfig(host HostFS, words []string) (cfg crioSettings, files []string, err error) {
	main, dir := crioConfig, crioConfigDir
	if v, found := flag(words, "config", "c"); found {
		main = v
	}
	if v, found := flag(words, "config-dir", "d"); found {
		dir = v
	}
	entries, err := readDir(host, dir)
	if err != nil {
		return cfg, nil, err
	}
	candidates := []string{main}
	for _, e := range entries {
		if !e.IsDir() {
			candidates = append(candidates, path.Join(dir, e.Name()))
		}
	}
	for _, file := range candidates {
		content, found, err := readOptional(host, file)
		if err != nil {
			return cfg, nil, err
		}
		if !found {
			continue
		}
		if err := decodeTOML(file, content, &cfg); err != nil {
			return cfg, nil, err
		}
		files = append(files, file)
	}
	return cfg, files, nil
}

func orDefault(value *string, otherwise string) string {
	if value == nil || *value == "" {
		return otherwise
	}
	return *value
}

// crioRestart says what a restart does. Containers outlive CRI-O, because each conmon has a control
// group of its own; but a CRI-O of another minor version than the running one wipes them as it
// starts (internal_wipe).
func crioRestart(host HostFS, u *Unit, cfg crioSettings) (RestartEffect, error) {
	effect := RestartEffect{KillsContainers: False, Why: "conmon has a control group of its own (cgroup_manager = systemd)"}
	if manager := orDefault(cfg.Crio.Runtime.CgroupManager, "systemd"); manager != "systemd" {
		effect.Why = fmt.Sprintf("conmon has the pod's control group (cgroup_manager = %s, conmon_cgroup = pod)", manager)
		if orDefault(cfg.Crio.Runtime.ConmonCgroup, "") != "pod" {
			effect = restartByKillMode(u)
			effect.Why = fmt.Sprintf("conmon is in CRI-O's control group (cgroup_manager = %s), and %s", manager, effect.Why)
		}
	}
	if wipe := cfg.Crio.InternalWipe; wipe != nil && !*wipe {
		return effect, nil
	}
	file := orDefault(cfg.Crio.VersionFile, crioVersionFile)
	content, found, err := readOptional(host, file)
	if err != nil || !found {
		return effect, err // it is not running, so there is nothing to wipe
	}
	running := minor(strings.Trim(strings.TrimSpace(string(content)), `"`))
	installed, err := installedPackage(host, "cri-o")
	if err != nil {
		return effect, err
	}
	switch {
	case running == "" || installed == "":
		effect.KillsContainers = Unknown
		effect.Why = fmt.Sprintf("the running version is in %s, and the installed one cannot be told from files; CRI-O wipes all containers and images when the two differ in major or minor", file)
	case running != installed:
		effect.KillsContainers = True
		effect.Why = fmt.Sprintf("CRI-O %s is running and %s is installed", running, installed)
		effect.Refuse = effect.Why + ", and with its restart it would wipe all containers and images; drain the node and restart it first"
	default:
		effect.Why += fmt.Sprintf("; CRI-O %s is running and installed", running)
	}
	return effect, nil
}

// minor returns major.minor of a version, or "" when it is none.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 || !isNumber(parts[0]) || !isNumber(parts[1]) {
		return ""
	}
	return parts[0] + "." + parts[1]
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// installedPackage returns major.minor of a package in dpkg's database; "" when it is not there or
// the host has another one.
func installedPackage(host HostFS, name string) (string, error) {
	content, found, err := readOptional(host, "/var/lib/dpkg/status")
	if err != nil || !found {
		return "", err
	}
	inside := false
	for line := range strings.SplitSeq(string(content), "\n") {
		if p, isPackage := strings.CutPrefix(line, "Package: "); isPackage {
			inside = p == name
		}
		if v, isVersion := strings.CutPrefix(line, "Version: "); inside && isVersion {
			if _, after, hasEpoch := strings.Cut(v, ":"); hasEpoch {
				v = after
			}
			return minor(v), nil
		}
	}
	return "", nil
}
