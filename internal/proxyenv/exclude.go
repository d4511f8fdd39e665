package proxyenv

import (
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// excludedSet holds what the profile excludes, in the forms in which entries and facts are looked
// up in it.
func (r *resolver) excludedSet() map[string]bool { return excludedSet(r.spec.NoProxy.Exclude) }

func excludedSet(values []string) map[string]bool {
	set := make(map[string]bool, len(values))
	for _, v := range values {
		set[normaliseExclusion(v)] = true
	}
	return set
}

// normaliseExclusion returns a value as entries spell it, or in lower case where it is none.
func normaliseExclusion(raw string) string {
	if e := registryEntry(raw); e.kind != kindDead {
		return e.value()
	}
	return strings.ToLower(strings.TrimSpace(raw))
}

func (r *resolver) excluded() []string {
	var out []string
	for _, v := range r.spec.NoProxy.Exclude {
		out = append(out, normaliseExclusion(v))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// noteExclusions says of each exclusion what it did, and where it did not do what was hoped for.
func (r *resolver) noteExclusions(rev *v1alpha1.ProxyRevisionSpec) {
	const path = "spec.noProxy.exclude"
	if len(rev.Excluded) == 0 {
		return
	}
	without := *r
	without.spec = r.spec.DeepCopy()
	without.spec.NoProxy.Exclude = nil
	without.notes, without.errs = nil, nil
	all := map[string]v1alpha1.NoProxyEntry{}
	for _, e := range without.entries(rev) {
		all[e.Value] = e
	}
	m := coverage(rev.NoProxy)
	for _, v := range rev.Excluded {
		computed, known := all[v]
		switch {
		case isFactName(v):
			r.note(path, v, "nothing computed from this fact is in NO_PROXY, as the profile asks")
			continue
		case !known && v != rev.Cluster.APIServer:
			r.note(path, v, "no computed entry has this value, so it changes nothing")
			continue
		case known && computed.Source == v1alpha1.SourceProfile:
			r.note(path, v, "the entry is the profile's own and stays; remove it from spec.noProxy.entries")
			continue
		}
		reason := computed.Reason
		if !known {
			reason = "API server"
		}
		e := parseEntry(v)
		if e.kind == kindName || e.kind == kindAddress {
			if d := m.Decide("https://" + urlHost(e)); d.Direct {
				r.note(path, v, "the entry (%s) is left out, yet the host is still reached directly: %s", reason, d.Why)
				continue
			}
		}
		r.note(path, v, "the entry (%s) is left out, as the profile asks, so this goes through the proxy", reason)
	}
}

func isFactName(v string) bool {
	switch v {
	case factAPIServer, factServiceCIDRs, factPodCIDRs, factNodeCIDRs:
		return true
	}
	return false
}

// urlHost returns the authority of a URL that asks for the host of an entry.
func urlHost(e entry) string {
	host := strings.TrimPrefix(e.host, ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if e.port != "" {
		host += ":" + e.port
	}
	return host
}
