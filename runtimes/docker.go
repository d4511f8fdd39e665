package runtimes

import (
	"fmt"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// docker is the adapter of docker.service.
type docker struct{}

func (docker) Target() v1alpha1.Target { return v1alpha1.TargetDocker }
func (docker) Units() []string         { return []string{"docker.service"} }
func (docker) Experimental() bool      { return false }

const (
	dockerConfig = "/etc/docker/daemon.json"
	dockerSocket = "/run/docker.sock"
)

// daemonJSON is what matters here of dockerd's configuration file. The proxies are read by Docker
// 23 and later.
type daemonJSON struct {
	Proxies struct {
		HTTP  string `json:"http-proxy"`
		HTTPS string `json:"https-proxy"`
		No    string `json:"no-proxy"`
	} `json:"proxies"`
	Mirrors     []string `json:"registry-mirrors"`
	LiveRestore *bool    `json:"live-restore"`
	Hosts       []string `json:"hosts"`
}

// Inspect reads daemon.json and the flags of the unit.
func (docker) Inspect(host HostFS, name string) (Runtime, error) {
	u, err := FindUnit(host, name)
	if err != nil {
		return Runtime{}, err
	}
	if u == nil {
		return Runtime{}, missing(name)
	}
	words := u.command(u.Environment(host))
	file := dockerConfig
	if v, found := flag(words, "config-file"); found {
		file = v
	}
	var cfg daemonJSON
	out := Runtime{Target: v1alpha1.TargetDocker, Unit: name, API: PullByDocker}
	content, found, err := readOptional(host, file)
	if err != nil {
		return Runtime{}, err
	}
	if found {
		out.Config = append(out.Config, file)
		if len(content) > 0 {
			if err := decodeJSON(file, content, &cfg); err != nil {
				return Runtime{}, err
			}
		}
	}
	out.Overrides = dockerOverrides(u, words, file, cfg)
	if out.Hosts, err = dockerMirrors(u, words, file, cfg); err != nil {
		return Runtime{}, err
	}
	if out.Socket, err = dockerListens(host, words, cfg); err != nil {
		return Runtime{}, err
	}
	out.Restart = dockerRestart(u, words, file, cfg)
	return out, nil
}

// dockerOverrides are the proxies of daemon.json and of flags: dockerd lays them over its
// environment, in both cases.
func dockerOverrides(u *Unit, words []string, file string, cfg daemonJSON) []Override {
	var out []Override
	for _, p := range []struct{ key, variable, value string }{
		{"http-proxy", "HTTP_PROXY", cfg.Proxies.HTTP},
		{"https-proxy", "HTTPS_PROXY", cfg.Proxies.HTTPS},
		{"no-proxy", "NO_PROXY", cfg.Proxies.No},
	} {
		if p.value != "" {
			out = append(out, Override{File: file, Key: "proxies." + p.key, Variable: p.variable, Value: maskValue(p.variable, p.value)})
		}
		if v, found := flag(words, p.key); found && v != "" {
			_, where := u.last("Service", "ExecStart")
			out = append(out, Override{File: where, Key: "--" + p.key, Variable: p.variable, Value: maskValue(p.variable, v)})
		}
	}
	return out
}

// maskValue masks what may be credentials in the value of a proxy variable.
func maskValue(variable, value string) string {
	if strings.EqualFold(variable, "NO_PROXY") {
		return value
	}
	return v1alpha1.MaskURL(value)
}

// dockerMirrors are those of Docker Hub; dockerd has none for other registries.
func dockerMirrors(u *Unit, words []string, file string, cfg daemonJSON) ([]RegistryHosts, error) {
	list := RegistryHosts{Registry: "docker.io", FallsBack: true, File: file}
	mirrors := cfg.Mirrors
	if given := flags(words, "registry-mirror"); len(given) > 0 { // each names one more
		_, list.File = u.last("Service", "ExecStart")
		mirrors = append(mirrors, given...)
	}
	for _, m := range mirrors {
		address, err := hostURL(m)
		if err != nil {
			return nil, fmt.Errorf("reading the registry-mirrors of %s: %w", list.File, err)
		}
		list.Hosts = append(list.Hosts, address)
	}
	if list.Hosts == nil {
		return nil, nil
	}
	return []RegistryHosts{list}, nil
}

// dockerListens returns the path of the API's socket: a unix:// host of the configuration or of the
// flags, docker.socket's where systemd hands it over (fd://), or the default.
func dockerListens(host HostFS, words []string, cfg daemonJSON) (string, error) {
	handedOver := false
	for _, h := range append(flags(words, "host", "H"), cfg.Hosts...) {
		if p, found := strings.CutPrefix(h, "unix://"); found && p != "" {
			return p, nil
		}
		handedOver = handedOver || strings.HasPrefix(h, "fd://")
	}
	if !handedOver {
		return dockerSocket, nil
	}
	u, err := FindUnit(host, "docker.socket")
	if err != nil || u == nil {
		return dockerSocket, err
	}
	if p, _ := u.last("Socket", "ListenStream"); strings.HasPrefix(p, "/") {
		return strings.Replace(p, "/var/run/", "/run/", 1), nil
	}
	return dockerSocket, nil
}

// dockerRestart says what a restart does: without live-restore dockerd stops every container.
func dockerRestart(u *Unit, words []string, file string, cfg daemonJSON) RestartEffect {
	live, why := false, "live-restore is not set in "+file
	if cfg.LiveRestore != nil {
		live, why = *cfg.LiveRestore, fmt.Sprintf("live-restore is %t in %s", *cfg.LiveRestore, file)
	}
	if on, found := boolFlag(words, "live-restore"); found {
		_, where := u.last("Service", "ExecStart")
		live, why = on, fmt.Sprintf("--live-restore is %t in %s", on, where)
	}
	effect := RestartEffect{KillsContainers: True, Why: why + ", so dockerd stops every container before it stops itself", Refuse: dockerConflict(u, words, file, cfg)}
	if !live {
		return effect
	}
	effect.KillsContainers, effect.Why = False, why
	if kill := restartByKillMode(u); kill.KillsContainers != False {
		effect.KillsContainers = Unknown
		effect.Why += ", but " + kill.Why + " ends the shims where dockerd runs a containerd of its own"
	}
	return effect
}

// dockerConflict finds what stands in daemon.json and in the flags together: dockerd then refuses
// to start.
func dockerConflict(u *Unit, words []string, file string, cfg daemonJSON) string {
	for _, c := range []struct {
		key   string
		inKey bool
		flags []string
	}{
		{"hosts", len(cfg.Hosts) > 0, []string{"host", "H"}},
		{"live-restore", cfg.LiveRestore != nil, []string{"live-restore"}},
		{"proxies.http-proxy", cfg.Proxies.HTTP != "", []string{"http-proxy"}},
		{"proxies.https-proxy", cfg.Proxies.HTTPS != "", []string{"https-proxy"}},
		{"proxies.no-proxy", cfg.Proxies.No != "", []string{"no-proxy"}},
	} {
		if c.inKey && hasFlag(words, c.flags...) {
			_, where := u.last("Service", "ExecStart")
			return fmt.Sprintf("%s sets %s and %s gives the flag --%s, and dockerd does not start with both; take one of them out", file, c.key, where, c.flags[0])
		}
	}
	return ""
}
