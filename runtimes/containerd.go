package runtimes

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// containerd is the adapter of containerd.service.
type containerd struct{}

func (containerd) Target() v1alpha1.Target { return v1alpha1.TargetContainerd }
func (containerd) Units() []string         { return []string{"containerd.service"} }
func (containerd) Experimental() bool      { return false }

// Defaults of containerd (defaults/defaults_unix.go there).
const (
	containerdConfig = "/etc/containerd/config.toml"
	containerdSocket = "/run/containerd/containerd.sock"
)

// Inspect reads config.toml with what it imports, and the hosts that its config_path leads to.
func (containerd) Inspect(host HostFS, name string) (Runtime, error) {
	u, err := FindUnit(host, name)
	if err != nil {
		return Runtime{}, err
	}
	if u == nil {
		return Runtime{}, missing(name)
	}
	words := u.command(u.Environment(host))
	main := containerdConfig
	if file, found := flag(words, "config", "c"); found {
		main = file
	}
	cfg, err := readContainerdConfig(host, main)
	if err != nil {
		return Runtime{}, err
	}
	out := Runtime{
		Target: v1alpha1.TargetContainerd, Unit: name, API: PullByCRI,
		Socket: containerdSocket, Config: cfg.files, Restart: restartByKillMode(u),
	}
	if cfg.address != "" {
		out.Socket = cfg.address
	}
	if address, found := flag(words, "address", "a"); found {
		out.Socket = address
	}
	lists, files, err := cfg.hosts(host)
	if err != nil {
		return Runtime{}, err
	}
	out.Hosts, out.Config = lists, append(out.Config, files...)
	return out, nil
}

// missing is the error of a unit that was there and no longer is.
func missing(unit string) error {
	return fmt.Errorf("inspecting %s: there is no such unit file; look for the runtime again", unit)
}

// containerdFile is what matters here of config.toml, versions 1 to 3.
type containerdFile struct {
	Imports []string       `toml:"imports"`
	Plugins map[string]any `toml:"plugins"`
	GRPC    struct {
		Address string `toml:"address"`
	} `toml:"grpc"`
}

// criPlugins are the names of the section that holds the registries: of version 3, 2 and 1.
func criPlugins() []string {
	return []string{"io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri", "cri"}
}

// containerdSettings is the merged configuration.
type containerdSettings struct {
	files   []string
	address string
	// registry of each of criPlugins that a file has, and the file.
	registry map[string]registrySettings
}

type registrySettings struct {
	configPath *string
	mirrors    map[string][]string
	file       string
	// kept: a later file has the section without a registry, which containerd 1 takes to replace
	// the whole section and containerd 2 merges.
	kept bool
}

// readContainerdConfig reads a configuration and what it imports, breadth first, later files over
// earlier ones, as containerd does.
func readContainerdConfig(host HostFS, main string) (containerdSettings, error) {
	cfg := containerdSettings{registry: map[string]registrySettings{}}
	pending := []string{main}
	for len(pending) > 0 {
		file := pending[0]
		pending = pending[1:]
		if slices.Contains(cfg.files, file) {
			continue
		}
		content, found, err := readOptional(host, file)
		if err != nil {
			return cfg, err
		}
		if !found {
			if file != main {
				return cfg, fmt.Errorf("reading %s: it imports %s, which does not exist, and containerd does not start so; create it or take the import out", main, file)
			}
			continue
		}
		var parsed containerdFile
		if err := decodeTOML(file, content, &parsed); err != nil {
			return cfg, err
		}
		cfg.files = append(cfg.files, file)
		cfg.merge(file, parsed)
		for _, pattern := range parsed.Imports {
			more, err := expandImport(host, path.Dir(file), pattern)
			if err != nil {
				return cfg, err
			}
			pending = append(pending, more...)
		}
	}
	return cfg, nil
}

func (c *containerdSettings) merge(file string, parsed containerdFile) {
	if parsed.GRPC.Address != "" {
		c.address = parsed.GRPC.Address
	}
	for _, plugin := range criPlugins() {
		section, isTable := parsed.Plugins[plugin].(map[string]any)
		if !isTable {
			continue
		}
		registry, isTable := section["registry"].(map[string]any)
		if !isTable {
			if old, found := c.registry[plugin]; found {
				old.kept = true
				c.registry[plugin] = old
			}
			continue
		}
		s := registrySettings{file: file, mirrors: map[string][]string{}}
		if p, isString := registry["config_path"].(string); isString {
			s.configPath = &p
		}
		mirrors, _ := registry["mirrors"].(map[string]any)
		for name, m := range mirrors {
			fields, _ := m.(map[string]any)
			endpoints, _ := fields["endpoint"].([]any)
			for _, e := range endpoints {
				if text, isString := e.(string); isString {
					s.mirrors[name] = append(s.mirrors[name], text)
				}
			}
		}
		c.registry[plugin] = s
	}
}

// expandImport resolves one import: relative to the importing file, * as a pattern.
func expandImport(host HostFS, dir, pattern string) ([]string, error) {
	if !path.IsAbs(pattern) {
		pattern = path.Join(dir, pattern)
	}
	pattern = path.Clean(pattern)
	if !strings.Contains(pattern, "*") {
		return []string{pattern}, nil
	}
	if strings.Contains(path.Dir(pattern), "*") {
		return nil, fmt.Errorf("reading the import %q of containerd: a pattern in its folder is not supported here; name the folder", pattern)
	}
	entries, err := readDir(host, path.Dir(pattern))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if match, _ := path.Match(path.Base(pattern), e.Name()); match {
			out = append(out, path.Join(path.Dir(pattern), e.Name()))
		}
	}
	return out, nil
}

// defaultConfigPath is that of containerd since 2.2; before, none was.
const defaultConfigPath = "/etc/containerd/certs.d:/etc/docker/certs.d"

// hosts returns the lists that the settings lead to.
func (c *containerdSettings) hosts(host HostFS) ([]RegistryHosts, []string, error) {
	var s registrySettings
	for _, plugin := range criPlugins() {
		if found, ok := c.registry[plugin]; ok {
			s = found
			break
		}
	}
	doubt := ""
	if s.kept {
		doubt = fmt.Sprintf("a file imported after %s has the same section without a registry: containerd 1 then forgets the registry and containerd 2 keeps it", s.file)
	}
	switch {
	case s.configPath == nil && len(s.mirrors) > 0, s.configPath != nil && *s.configPath == "":
		lists, err := legacyMirrors(s)
		return doubted(lists, doubt), nil, err
	case s.configPath == nil:
		lists, files, err := readCertsD(host, strings.Split(defaultConfigPath, ":"))
		return doubted(lists, "no config_path is set, and containerd looks there without one only since 2.2"), files, err
	case len(s.mirrors) > 0:
		doubt = fmt.Sprintf("%s sets config_path and mirrors together, and containerd then does not serve the CRI", s.file)
	}
	lists, files, err := readCertsD(host, strings.Split(*s.configPath, ":"))
	return doubted(lists, doubt), files, err
}

func doubted(lists []RegistryHosts, doubt string) []RegistryHosts {
	for i := range lists {
		lists[i].Doubt = doubt
	}
	return lists
}

// legacyMirrors are those of registry.mirrors, which containerd reads where config_path is unset.
// The registry is tried last unless it is one of its own endpoints.
func legacyMirrors(s registrySettings) ([]RegistryHosts, error) {
	var lists []RegistryHosts
	for _, name := range slices.Sorted(maps.Keys(s.mirrors)) {
		list := RegistryHosts{Registry: name, FallsBack: true, File: s.file}
		for _, e := range s.mirrors[name] {
			address, err := hostURL(e)
			if err != nil {
				return nil, fmt.Errorf("reading %s: the mirrors of %q: %w", s.file, name, err)
			}
			list.Hosts = append(list.Hosts, address)
			if hostOf(address) == name {
				list.FallsBack = false
			}
		}
		lists = append(lists, list)
	}
	return lists, nil
}
