package preflight

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/internal/desired"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// Decision says which way a host goes under the profile's environment, by Go's own matcher.
type Decision struct {
	// URL that was asked for.
	URL string `json:"url"`
	// What the host is.
	What string `json:"what"`
	// Route that it takes: Direct or Proxy.
	Route v1alpha1.Route `json:"route"`
	// Expected route, where there is one.
	Expected v1alpha1.Route `json:"expected,omitempty"`
	// Entry of NO_PROXY that decided; "" when something else did.
	Entry string `json:"entry,omitempty"`
	Why   string `json:"why"`
}

// Wrong says that the route is not the expected one.
func (d Decision) Wrong() bool { return d.Expected != "" && d.Expected != d.Route }

// decider collects decisions, one for each URL.
type decider struct {
	matcher  *proxyenv.Matcher
	excluded []string
	list     []Decision
}

func (d *decider) add(what, url string, expected v1alpha1.Route) {
	if slices.ContainsFunc(d.list, func(o Decision) bool { return o.URL == url }) {
		return
	}
	made := d.matcher.Decide(url)
	if made.Err != nil {
		d.list = append(d.list, Decision{URL: made.URL, What: what, Route: v1alpha1.RouteUnknown, Expected: expected, Why: made.Err.Error()})
		return
	}
	out := Decision{URL: made.URL, What: what, Route: v1alpha1.RouteProxy, Expected: expected, Why: made.Why}
	if made.Direct {
		out.Route = v1alpha1.RouteDirect
	}
	if made.Entry != nil {
		out.Entry = made.Entry.Value
	}
	d.list = append(d.list, out)
}

// expect is the direct route, unless the profile leaves the value out on purpose.
func (d *decider) expect(value string) v1alpha1.Route {
	if slices.Contains(d.excluded, value) {
		return ""
	}
	return v1alpha1.RouteDirect
}

// decide makes the table: the cluster, the cloud, the profile's networks, the registries, and
// whatever the walks were sent to.
func (s *subject) decide(ctx context.Context) []Decision {
	d := &decider{matcher: s.matcher(), excluded: s.wanted.Spec.Excluded, list: []Decision{}}
	s.decideAPIServers(ctx, d)
	facts := s.wanted.Spec.Cluster
	for _, networks := range []struct {
		what, fact string
		cidrs      []string
	}{
		{"service network", "cluster.serviceCIDRs", facts.ServiceCIDRs},
		{"pod network", "cluster.podCIDRs", facts.PodCIDRs},
		{"node network", "cluster.nodeCIDRs", facts.NodeCIDRs},
	} {
		for _, cidr := range networks.cidrs {
			expected := d.expect(cidr)
			if slices.ContainsFunc(d.excluded, func(e string) bool { return strings.EqualFold(e, networks.fact) }) {
				expected = ""
			}
			d.network(networks.what, cidr, expected)
		}
	}
	for _, e := range s.wanted.Spec.NoProxy {
		switch {
		case e.Source == v1alpha1.SourceCloud:
			d.add("cloud metadata", "http://"+bracketed(e.Value), v1alpha1.RouteDirect)
		case e.Source == v1alpha1.SourceProfile && strings.Contains(e.Value, "/"):
			d.network("network of the profile", e.Value, v1alpha1.RouteDirect)
		}
	}
	s.decideConfigured(d)
	s.decideHops(d)
	return d.list
}

func (s *subject) matcher() *proxyenv.Matcher { return proxyenv.NewMatcher(s.environmentOf()) }

// environmentOf is the environment that all units share.
func (s *subject) environmentOf() proxyenv.Environment {
	if len(s.wanted.Units) == 0 {
		return proxyenv.Environment{}
	}
	return s.wanted.Units[0].Environment
}

// decideAPIServers asks for the API server by its name, and by the addresses that it has here.
func (s *subject) decideAPIServers(ctx context.Context, d *decider) {
	servers := []string{s.wanted.Spec.Cluster.APIServer}
	if own, _, err := runtimes.APIServer(s.host.Root, "kubelet.service"); err == nil {
		servers = append(servers, own)
	}
	for i, server := range servers {
		if server == "" {
			continue
		}
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = server, "443"
		}
		what := "API server"
		if i > 0 {
			what = "API server, as this node's kubelet names it"
		}
		expected := d.expect(host)
		if slices.ContainsFunc(d.excluded, func(e string) bool { return strings.EqualFold(e, "cluster.apiServer") }) {
			expected = ""
		}
		if i > 0 && !slices.Contains(s.wanted.Spec.Targets, v1alpha1.TargetKubelet) {
			expected = "" // the kubelet does not get the profile's environment
		}
		d.add(what, "https://"+net.JoinHostPort(host, port), expected)
		if _, err := netip.ParseAddr(host); err == nil {
			continue
		}
		// Runtimes do not ask for it by address, so that route is told and not judged.
		addrs, err := s.lookup(ctx, host)
		if err != nil {
			continue // its name is judged above; PW403 says that it does not resolve
		}
		for _, a := range addrs {
			d.add(what+", by address", "https://"+net.JoinHostPort(a.String(), port), "")
		}
	}
}

// network asks for the first and the last address.
func (d *decider) network(what, cidr string, expected v1alpha1.Route) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return // a path or a name, which PW202 names
	}
	for _, a := range []netip.Addr{prefix.Masked().Addr(), last(prefix)} {
		d.add(what+" "+cidr, "https://"+bracketed(a.String()), expected)
	}
}

// last is the highest address of a network.
func last(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 1 << (7 - bit%8)
	}
	a, _ := netip.AddrFromSlice(raw) // as long as it was
	return a
}

func bracketed(host string) string {
	if a, err := netip.ParseAddr(host); err == nil && a.Is6() {
		return "[" + host + "]"
	}
	return host
}

// registryWord is what an internal registry is called in the table.
const registryWord = "internal registry"

// decideConfigured asks for what the profile and the runtimes' own files name.
func (s *subject) decideConfigured(d *decider) {
	for _, r := range s.wanted.Spec.InternalRegistries {
		d.add(registryWord, "https://"+r, d.expect(r))
	}
	var found []runtimes.Runtime
	for _, u := range s.wanted.Units {
		found = append(found, u.Runtime)
	}
	for _, m := range desired.Mirrors(found) {
		d.add("mirror", "https://"+m, "")
	}
}

// decideHops asks for what the walks were sent to.
func (s *subject) decideHops(d *decider) {
	what := map[canary.Purpose]string{canary.PurposeToken: "token realm", canary.PurposeRedirect: "redirect"}
	for _, w := range s.walks() {
		for _, hop := range w.report.Hops {
			scheme, _, _ := strings.Cut(hop.URL, "://")
			kind := "registry"
			if k := what[hop.Purpose]; k != "" {
				kind = k
			}
			d.add(fmt.Sprintf("%s of %s", kind, w.canary.Image), scheme+"://"+hop.Host, "")
		}
	}
}

func checkDecisions(_ context.Context, s *subject) []Result {
	if len(s.wanted.Units) == 0 {
		return []Result{noRuntime()}
	}
	table := s.table()
	var wrong []string
	direct := 0
	for _, d := range table {
		if d.Route == v1alpha1.RouteDirect {
			direct++
		}
		if d.Wrong() {
			wrong = append(wrong, fmt.Sprintf("%s (%s) goes by %s: %s", d.URL, d.What, strings.ToLower(string(d.Route)), d.Why))
		}
	}
	if len(wrong) > 0 {
		return []Result{fail("", Now, "add it to spec.noProxy.entries, or name it in spec.registries.internal or spec.cluster", wrong...)}
	}
	return []Result{pass("", fmt.Sprintf("%s asked for, %d direct, %d by proxy; none goes another way than it must", count(len(table), "host"), direct, len(table)-direct))}
}

// checkDeadEntries names what in the profile matches nothing.
func checkDeadEntries(_ context.Context, s *subject) []Result {
	var seen []string
	for _, f := range proxyenv.Lint(s.request.Profile) {
		if f.Severity != proxyenv.SeverityInfo {
			seen = append(seen, f.String())
		}
	}
	for _, n := range s.wanted.Notes {
		seen = append(seen, n.String())
	}
	if len(seen) > 0 {
		return []Result{warn("", "correct the profile as it says", seen...)}
	}
	return []Result{pass("", fmt.Sprintf("all of the %d entries can match something", len(s.wanted.Spec.NoProxy)))}
}
