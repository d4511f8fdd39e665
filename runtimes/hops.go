package runtimes

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Hop is one host that a pull of an image asks.
type Hop struct {
	// URL of the host: scheme://host[:port][/path].
	URL string
	// Resolves: it is asked for the digest of a tag.
	Resolves bool
	// Pulls: manifests and layers are taken from it.
	Pulls bool
	// Mirror says that it is not the image's own registry.
	Mirror bool
	// File that names it; empty for the registry itself.
	File string
	// Doubt is RegistryHosts.Doubt.
	Doubt string
}

// ExpectedHops returns the hosts that a pull of an image tries, in order, by the runtime's own host
// lists. A registry that redirects to further hosts, for blobs or for tokens, is not seen here.
func ExpectedHops(r Runtime, image string) ([]Hop, error) {
	registry, repository, err := splitImage(image)
	if err != nil {
		return nil, err
	}
	own := registryURL(registry)
	kind := ByTag
	if strings.Contains(image, "@") {
		kind = ByDigest
	}
	list, found := listFor(r.Hosts, registry+"/"+repository, kind)
	if !found {
		return []Hop{{URL: own, Resolves: true, Pulls: true}}, nil
	}
	var hops []Hop
	resolvers := list.Resolvers
	if resolvers == nil {
		resolvers = list.Hosts
	}
	add := func(address string, resolves, pulls bool) {
		for i := range hops {
			if hops[i].URL == address {
				hops[i].Resolves = hops[i].Resolves || resolves
				hops[i].Pulls = hops[i].Pulls || pulls
				return
			}
		}
		hops = append(hops, Hop{URL: address, Resolves: resolves, Pulls: pulls,
			Mirror: hostOf(address) != hostOf(own), File: list.File, Doubt: list.Doubt})
	}
	for _, h := range resolvers {
		add(h, true, false)
	}
	for _, h := range list.Hosts {
		add(h, false, true)
	}
	if list.FallsBack {
		add(own, true, true)
	}
	return hops, nil
}

// listFor returns the list of an image: the longest that names its registry or a prefix of its
// repository, then one for *.domain, then the one for all others.
func listFor(lists []RegistryHosts, name string, kind ReferenceKind) (best RegistryHosts, found bool) {
	registry, _, _ := strings.Cut(name, "/")
	rank := -1
	for _, l := range lists {
		if l.References != AnyReference && l.References != kind {
			continue
		}
		r := -1
		switch {
		case l.Registry == "*":
			r = 0
		case matchesWildcard(l.Registry, registry):
			r = len(l.Registry)
		case l.Registry == name || strings.HasPrefix(name, l.Registry+"/"):
			r = 1000 + len(l.Registry) // a name of 1,000 characters is none
		}
		if r > rank {
			best, rank, found = l, r, true
		}
	}
	return best, found
}

// matchesWildcard reports whether *.domain covers a registry.
func matchesWildcard(pattern, registry string) bool {
	suffix, isWildcard := strings.CutPrefix(pattern, "*.")
	host, _, err := net.SplitHostPort(registry)
	if err != nil {
		host = registry
	}
	return isWildcard && strings.HasSuffix(host, "."+suffix)
}

// splitImage takes an image reference apart as the runtimes do: what stands before the first slash
// is a registry when it has a dot or a colon, or is localhost; else the registry is docker.io.
func splitImage(image string) (registry, repository string, err error) {
	name, _, _ := strings.Cut(image, "@")
	first, rest, hasSlash := strings.Cut(name, "/")
	if hasSlash && (strings.ContainsAny(first, ".:") || first == "localhost") {
		registry, repository = first, rest
	} else {
		registry, repository = "docker.io", name
		if !hasSlash {
			repository = "library/" + name
		}
	}
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository = repository[:i]
	}
	if registry == "index.docker.io" {
		registry = "docker.io"
	}
	if name == "" || repository == "" || strings.ContainsAny(image, " \t\r\n") || strings.Contains(image, "://") {
		return "", "", fmt.Errorf("reading the image reference %q: it is not registry/repository[:tag][@digest]", image)
	}
	return registry, repository, nil
}

// registryURL is where a registry's own API is. Docker Hub's is elsewhere than its name says, and
// one on this machine is asked without TLS unless its port says otherwise.
func registryURL(registry string) string {
	if registry == "docker.io" {
		return "https://registry-1.docker.io"
	}
	host, port, err := net.SplitHostPort(registry)
	if err != nil {
		host, port = registry, ""
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	if (host == "localhost" || ip != nil && ip.IsLoopback()) && port != "" && port != "443" {
		return "http://" + registry
	}
	return "https://" + registry
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
