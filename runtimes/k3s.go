package runtimes

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// distribution is the adapter of a Kubernetes distribution that is one process: its kubelet and
// control plane, with a containerd of its own as a child, to which it hands the variables with the
// prefix CONTAINERD_ without it.
type distribution struct {
	target v1alpha1.Target
	units  []string
	// config is the folder of its configuration.
	config string
}

func k3s() distribution {
	return distribution{v1alpha1.TargetK3s, []string{"k3s.service", "k3s-agent.service"}, "/etc/rancher/k3s"}
}

func rke2() distribution {
	return distribution{v1alpha1.TargetRKE2, []string{"rke2-server.service", "rke2-agent.service"}, "/etc/rancher/rke2"}
}

func (d distribution) Target() v1alpha1.Target { return d.target }
func (d distribution) Units() []string         { return slices.Clone(d.units) }
func (d distribution) Experimental() bool      { return true }

const (
	containerdPrefix = "CONTAINERD_"
	embeddedSocket   = "/run/k3s/containerd/containerd.sock"
)

// distributionConfig is what matters here of config.yaml; the flags of the unit are called the same.
type distributionConfig struct {
	Endpoint        string `json:"container-runtime-endpoint"`
	Docker          bool   `json:"docker"`
	NoDefault       bool   `json:"disable-default-registry-endpoint"`
	PrivateRegistry string `json:"private-registry"`
	Embedded        bool   `json:"embedded-registry"`
}

// Inspect reads config.yaml and registries.yaml.
func (d distribution) Inspect(host HostFS, name string) (Runtime, error) {
	u, err := FindUnit(host, name)
	if err != nil {
		return Runtime{}, err
	}
	if u == nil {
		return Runtime{}, missing(name)
	}
	cfg, files, err := d.read(host, u.command(u.Environment(host)))
	if err != nil {
		return Runtime{}, err
	}
	out := Runtime{
		Target: d.target, Unit: name, Prefix: containerdPrefix, Socket: embeddedSocket, API: PullByCRI,
		Config: files, Restart: restartByKillMode(u),
	}
	if cfg.Endpoint != "" || cfg.Docker {
		return Runtime{}, &RefusedError{Unit: name, Why: "it uses another runtime (container-runtime-endpoint or docker), which has a unit of its own; name that runtime as the target"}
	}
	lists, found, err := readRegistriesYAML(host, cfg)
	if err != nil {
		return Runtime{}, err
	}
	if found {
		out.Hosts, out.Config = lists, append(out.Config, cfg.PrivateRegistry)
	}
	return out, nil
}

// read merges config.yaml, its drop-ins in order, and the flags, which win.
func (d distribution) read(host HostFS, words []string) (cfg distributionConfig, files []string, err error) {
	cfg.PrivateRegistry = d.config + "/registries.yaml"
	main := d.config + "/config.yaml"
	if v, found := flag(words, "config", "c"); found {
		main = v
	}
	candidates := []string{main}
	entries, err := readDir(host, main+".d")
	if err != nil {
		return cfg, nil, err
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".yaml" || ext == ".yml" {
			candidates = append(candidates, path.Join(main+".d", e.Name()))
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
		if err := decodeYAML(file, content, &cfg); err != nil {
			return cfg, nil, err
		}
		files = append(files, file)
	}
	if v, found := flag(words, "container-runtime-endpoint"); found {
		cfg.Endpoint = v
	}
	if v, found := flag(words, "private-registry"); found {
		cfg.PrivateRegistry = v
	}
	if on, found := boolFlag(words, "docker"); found {
		cfg.Docker = on
	}
	if on, found := boolFlag(words, "disable-default-registry-endpoint"); found {
		cfg.NoDefault = on
	}
	if on, found := boolFlag(words, "embedded-registry"); found {
		cfg.Embedded = on
	}
	return cfg, files, nil
}

// registriesYAML is what matters here of registries.yaml. Its configs hold passwords and are not
// read.
type registriesYAML struct {
	Mirrors map[string]struct {
		Endpoints []string `json:"endpoint"`
	} `json:"mirrors"`
}

func readRegistriesYAML(host HostFS, cfg distributionConfig) (lists []RegistryHosts, found bool, err error) {
	content, found, err := readOptional(host, cfg.PrivateRegistry)
	if err != nil || !found {
		return nil, false, err
	}
	var parsed registriesYAML
	if err := decodeYAML(cfg.PrivateRegistry, content, &parsed); err != nil {
		return nil, false, err
	}
	for _, name := range slices.Sorted(maps.Keys(parsed.Mirrors)) {
		list := RegistryHosts{Registry: name, FallsBack: !cfg.NoDefault, File: cfg.PrivateRegistry}
		if cfg.Embedded {
			list.Doubt = "the embedded registry is on, so other nodes are asked before these hosts"
		}
		for _, e := range parsed.Mirrors[name].Endpoints {
			address, err := hostURL(e)
			if err != nil {
				return nil, false, fmt.Errorf("reading %s: the mirrors of %q: %w", cfg.PrivateRegistry, name, err)
			}
			list.Hosts = append(list.Hosts, address)
		}
		lists = append(lists, list)
	}
	return lists, true, nil
}

// decodeYAML reads a YAML file into v. The parser's error may quote the text, so it is left out.
func decodeYAML(file string, content []byte, v any) error {
	if err := yaml.Unmarshal(content, v); err != nil {
		return fmt.Errorf("reading %s as YAML: it is malformed or a key holds another type than it must; correct it", file)
	}
	return nil
}
