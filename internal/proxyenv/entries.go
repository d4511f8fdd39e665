package proxyenv

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// MaxEnvString is the size in bytes of the longest NAME=value that a process can be started with:
// the kernel's MAX_ARG_STRLEN of 32 pages of 4 KiB, less the terminating NUL (execve(2)).
const MaxEnvString = 32*4096 - 1

// entrySet collects entries; of several with one value the first added stays, and the sources are
// added in the order in which they win.
type entrySet struct {
	entries  []v1alpha1.NoProxyEntry
	seen     map[string]bool
	excluded map[string]bool
}

// newEntrySet has room for about size entries.
func newEntrySet(size int, excluded map[string]bool) *entrySet {
	return &entrySet{entries: make([]v1alpha1.NoProxyEntry, 0, size), seen: make(map[string]bool, size), excluded: excluded}
}

// add adds a computed entry unless the profile leaves it out.
func (s *entrySet) add(source v1alpha1.EntrySource, value, reason string) {
	if !s.excluded[value] {
		s.put(source, value, reason)
	}
}

func (s *entrySet) put(source v1alpha1.EntrySource, value, reason string) {
	if s.seen[value] {
		return
	}
	s.seen[value] = true
	s.entries = append(s.entries, v1alpha1.NoProxyEntry{Value: value, Source: source, Reason: reason})
}

func (s *entrySet) addAll(source v1alpha1.EntrySource, values []string, reason string) {
	for _, v := range values {
		s.add(source, v, reason)
	}
}

func (s *entrySet) sorted() []v1alpha1.NoProxyEntry {
	slices.SortFunc(s.entries, func(a, b v1alpha1.NoProxyEntry) int { return strings.Compare(a.Value, b.Value) })
	return s.entries
}

// entries computes the whole list of a revision whose other fields are resolved.
func (r *resolver) entries(rev *v1alpha1.ProxyRevisionSpec) []v1alpha1.NoProxyEntry {
	const computed = 32 // about as many as the cluster gives
	set := newEntrySet(len(r.spec.NoProxy.Entries)+computed, r.excludedSet())
	set.addAll(v1alpha1.SourceLoopback, []string{"localhost", "127.0.0.1", "127.0.0.0/8", "::1"}, "this host")
	r.clusterEntries(set, rev.Cluster)
	for _, m := range cloudMetadata(rev.Cluster.Cloud) {
		set.add(v1alpha1.SourceCloud, m.value, m.reason)
	}
	set.addAll(v1alpha1.SourceRegistry, rev.InternalRegistries, "internal registry")
	r.profileEntries(set)
	out := set.sorted()
	if size := len("NO_PROXY=") + len(joinEntries(out)); size > MaxEnvString {
		r.fail("spec.noProxy.entries", "", fmt.Sprintf("NO_PROXY would have %d bytes, and no process can be started with more than %d in one variable", size, MaxEnvString),
			"write domains and CIDRs rather than single hosts")
	}
	return out
}

func (r *resolver) clusterEntries(set *entrySet, c v1alpha1.ClusterFacts) {
	const source = v1alpha1.SourceCluster
	set.add(source, ".svc", "services by their short names")
	set.add(source, "."+c.Domain, "cluster domain")
	set.addAll(source, []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + c.Domain,
	}, "API server's service name")
	for _, f := range []struct {
		fact, reason string
		networks     []string
	}{
		{factServiceCIDRs, "service network", c.ServiceCIDRs},
		{factPodCIDRs, "pod network", c.PodCIDRs},
		{factNodeCIDRs, "node network", c.NodeCIDRs},
	} {
		if !set.excluded[f.fact] {
			set.addAll(source, f.networks, f.reason)
		}
	}
	if set.excluded[factAPIServer] {
		return
	}
	if c.APIServer != "" && !set.excluded[c.APIServer] {
		// Without its port, so that every client understands it; IPv6 bare, as Go wants it.
		set.add(source, parseEntry(c.APIServer).host, "API server")
	}
	for i, raw := range r.facts.APIServerAddresses {
		addr, err := netip.ParseAddr(strings.TrimSpace(raw))
		if err != nil {
			r.fail(fmt.Sprintf("status.facts.apiServerAddresses[%d]", i), raw, "it is not an IP address", "")
			continue
		}
		if addr = addr.Unmap().WithZone(""); !inNetworks(addr, c.NodeCIDRs) {
			set.add(source, addr.String(), "API server's address")
		}
	}
}

func inNetworks(addr netip.Addr, networks []string) bool {
	return slices.ContainsFunc(networks, func(n string) bool {
		_, network, err := net.ParseCIDR(n)
		return err == nil && network.Contains(addr.AsSlice())
	})
}

func (r *resolver) profileEntries(set *entrySet) {
	first := make(map[string]int, len(r.spec.NoProxy.Entries))
	for i, req := range r.spec.NoProxy.Entries {
		e := parseEntry(req.Value)
		switch e.kind {
		case kindEverything:
			r.fail(entryPath(i), req.Value, "it would send everything past the proxy", "write the domains and networks that are meant")
			continue
		case kindDead:
			r.fail(entryPath(i), v1alpha1.MaskURL(req.Value), "Go matches nothing with it: "+e.problem, e.fix)
			continue
		}
		value := e.value()
		if j, ok := first[value]; ok {
			r.note(entryPath(i), req.Value, "it says the same as entries[%d]", j)
		} else {
			first[value] = i
		}
		if e.kind == kindCIDR && !strings.EqualFold(strings.TrimSpace(req.Value), value) {
			r.note(entryPath(i), req.Value, "its host bits mean nothing; %s is used", value)
		}
		set.put(v1alpha1.SourceProfile, value, req.Reason)
	}
}

func entryPath(i int) string { return fmt.Sprintf("spec.noProxy.entries[%d].value", i) }

func joinEntries(entries []v1alpha1.NoProxyEntry) string {
	size := len(entries)
	for _, e := range entries {
		size += len(e.Value)
	}
	var b strings.Builder
	b.Grow(size)
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e.Value)
	}
	return b.String()
}
