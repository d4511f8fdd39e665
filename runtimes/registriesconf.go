package runtimes

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Where CRI-O looks for registries (containers-registries.conf(5) and .conf.d(5)).
const (
	registriesConf    = "/etc/containers/registries.conf"
	registriesConfDir = "/etc/containers/registries.conf.d"
)

// registriesFile is what matters here of registries.conf. Version 1, with its tables of searched and
// insecure registries, has no mirrors.
type registriesFile struct {
	Registry []registrySpec `toml:"registry"`
}

type registrySpec struct {
	Prefix             string       `toml:"prefix"`
	Location           string       `toml:"location"`
	Blocked            bool         `toml:"blocked"`
	MirrorByDigestOnly bool         `toml:"mirror-by-digest-only"`
	Mirror             []mirrorSpec `toml:"mirror"`
	file               string
}

type mirrorSpec struct {
	Location       string `toml:"location"`
	PullFromMirror string `toml:"pull-from-mirror"`
}

// name is what the registry is for: a prefix, or its location where there is none.
func (s registrySpec) name() string {
	if s.Prefix != "" {
		return s.Prefix
	}
	return s.Location
}

// readRegistries reads the registries. One in a later file replaces that of the same prefix as a
// whole.
func readRegistries(host HostFS) (lists []RegistryHosts, files []string, err error) {
	entries, err := readDir(host, registriesConfDir)
	if err != nil {
		return nil, nil, err
	}
	candidates := []string{registriesConf}
	for _, e := range entries {
		if !e.IsDir() && path.Ext(e.Name()) == ".conf" {
			candidates = append(candidates, path.Join(registriesConfDir, e.Name()))
		}
	}
	var specs []registrySpec
	for _, file := range candidates {
		content, found, err := readOptional(host, file)
		if err != nil {
			return nil, nil, err
		}
		if !found {
			continue
		}
		var parsed registriesFile
		if err := decodeTOML(file, content, &parsed); err != nil {
			return nil, nil, err
		}
		files = append(files, file)
		for _, s := range parsed.Registry {
			s.file = file
			specs = slices.DeleteFunc(specs, func(old registrySpec) bool { return old.name() == s.name() })
			specs = append(specs, s)
		}
	}
	for _, s := range specs {
		more, err := s.lists()
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: the registry %q: %w", s.file, s.name(), err)
		}
		lists = append(lists, more...)
	}
	return lists, files, nil
}

// lists returns the hosts of a registry: one list, or one for tags and one for digests where its
// mirrors serve one of them alone.
func (s registrySpec) lists() ([]RegistryHosts, error) {
	byTag, err := s.list(ByTag)
	if err != nil {
		return nil, err
	}
	byDigest, err := s.list(ByDigest)
	if err != nil {
		return nil, err
	}
	if slices.Equal(byTag.Hosts, byDigest.Hosts) {
		byTag.References = AnyReference
		return []RegistryHosts{byTag}, nil
	}
	return []RegistryHosts{byTag, byDigest}, nil
}

func (s registrySpec) list(kind ReferenceKind) (RegistryHosts, error) {
	list := RegistryHosts{Registry: s.name(), References: kind, File: s.file}
	if s.Blocked {
		return list, nil // nothing is asked
	}
	for _, m := range s.Mirror {
		if !s.serves(m, kind) {
			continue
		}
		address, err := locationURL(m.Location)
		if err != nil {
			return RegistryHosts{}, err
		}
		list.Hosts = append(list.Hosts, address)
	}
	if s.Location == "" || s.Location == s.name() {
		list.FallsBack = true
		return list, nil
	}
	address, err := locationURL(s.Location)
	if err != nil {
		return RegistryHosts{}, err
	}
	list.Hosts = append(list.Hosts, address)
	return list, nil
}

func (s registrySpec) serves(m mirrorSpec, kind ReferenceKind) bool {
	only := m.PullFromMirror
	if s.MirrorByDigestOnly {
		only = "digest-only"
	}
	switch only {
	case "digest-only":
		return kind == ByDigest
	case "tag-only":
		return kind == ByTag
	default:
		return true
	}
}

// locationURL makes a URL of a location, which has no scheme. An insecure one is asked over https
// first all the same.
func locationURL(location string) (string, error) {
	address, err := hostURL(location)
	if err != nil {
		return "", err
	}
	if rest, isHub := strings.CutPrefix(address, "https://docker.io"); isHub && (rest == "" || rest[0] == '/') {
		return registryURL("docker.io") + rest, nil
	}
	return address, nil
}
