package runtimes

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// hostsFile is what matters here of a hosts.toml of containerd (docs/hosts.md there).
type hostsFile struct {
	Server       string              `toml:"server"`
	Capabilities []string            `toml:"capabilities"`
	Host         map[string]hostSpec `toml:"host"`
}

type hostSpec struct {
	Capabilities []string `toml:"capabilities"`
}

// readCertsD reads the host configurations below the folders of a config_path. For one registry
// containerd takes the first of the folders that holds anything for it, its _default included; in
// that folder host_port_ comes before host:port and both before _default.
func readCertsD(host HostFS, roots []string) (lists []RegistryHosts, files []string, err error) {
	taken := map[string]bool{}
	for _, root := range roots {
		if taken["*"] {
			break // an earlier _default serves every registry that has no list of its own there
		}
		entries, err := readDir(host, root)
		if err != nil {
			return nil, nil, err
		}
		// Escaped names first: they win over the same registry written with a colon.
		slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
			return strings.Compare(order(a.Name()), order(b.Name()))
		})
		for _, e := range entries {
			dir := path.Join(root, e.Name())
			if info, err := host.Stat(dir); err != nil || !info.IsDir() {
				continue
			}
			registry := registryOfDir(e.Name())
			if taken[registry] {
				continue
			}
			taken[registry] = true
			list, read, err := readHostsDir(host, dir, registry)
			if err != nil {
				return nil, nil, err
			}
			lists, files = append(lists, list), append(files, read...)
		}
	}
	return lists, files, nil
}

func order(name string) string {
	switch {
	case name == "_default":
		return "2"
	case strings.HasSuffix(name, "_"):
		return "0" + name
	default:
		return "1" + name
	}
}

// registryOfDir undoes containerd's names of folders: host_port_ for host:port.
func registryOfDir(name string) string {
	if name == "_default" {
		return "*"
	}
	if stem, found := strings.CutSuffix(name, "_"); found {
		if i := strings.LastIndexByte(stem, '_'); i > 0 {
			return stem[:i] + ":" + stem[i+1:]
		}
	}
	return name
}

func readHostsDir(host HostFS, dir, registry string) (RegistryHosts, []string, error) {
	file := path.Join(dir, "hosts.toml")
	content, found, err := readOptional(host, file)
	if err != nil {
		return RegistryHosts{}, nil, err
	}
	if !found || len(content) == 0 {
		// The folder holds certificates alone; it still keeps _default from being used.
		return RegistryHosts{Registry: registry, FallsBack: true, File: dir}, nil, nil
	}
	list, err := parseHosts(file, content, registry)
	return list, []string{file}, err
}

func parseHosts(file string, content []byte, registry string) (RegistryHosts, error) {
	var spec hostsFile
	if err := decodeTOML(file, content, &spec); err != nil {
		return RegistryHosts{}, err
	}
	list := RegistryHosts{Registry: registry, File: file, FallsBack: spec.Server == ""}
	var resolvers []string
	add := func(name string, capabilities []string) error {
		address, err := hostURL(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if can(capabilities, "pull") {
			list.Hosts = append(list.Hosts, address)
		}
		if can(capabilities, "resolve") {
			resolvers = append(resolvers, address)
		}
		return nil
	}
	for _, name := range keysInOrder(content, "host") {
		if err := add(name, spec.Host[name].Capabilities); err != nil {
			return RegistryHosts{}, err
		}
	}
	if spec.Server != "" {
		if err := add(spec.Server, spec.Capabilities); err != nil {
			return RegistryHosts{}, err
		}
	}
	if !slices.Equal(list.Hosts, resolvers) {
		list.Resolvers = resolvers
		if resolvers == nil {
			list.Resolvers = []string{}
		}
	}
	return list, nil
}

// can reports whether a host serves an operation. A host that names none serves all.
func can(capabilities []string, what string) bool {
	return len(capabilities) == 0 || slices.ContainsFunc(capabilities, func(c string) bool { return strings.EqualFold(c, what) })
}

// hostURL makes an absolute URL of how a host is written, https where no scheme is, and leaves out
// credentials and the /v2 that every registry has.
func hostURL(written string) (string, error) {
	text := written
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("the host %q is not scheme://host[:port]; write it so", v1alpha1.MaskURL(written))
	}
	p := strings.TrimSuffix(strings.TrimSuffix(path.Clean("/"+u.Path), "/v2"), "/")
	return u.Scheme + "://" + u.Host + p, nil
}
