package preflight

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// checkDirect connects to what goes direct and is known to listen: the API server, the internal
// registries, the mirrors. A NO_PROXY entry for what can only be reached by the proxy breaks it.
func checkDirect(ctx context.Context, s *subject) []Result {
	if len(s.wanted.Units) == 0 {
		return []Result{noRuntime()}
	}
	d := &decider{matcher: s.matcher(), excluded: s.wanted.Spec.Excluded}
	s.decideAPIServers(ctx, d)
	s.decideConfigured(d)
	targets := slices.DeleteFunc(d.list, func(d Decision) bool { return d.Route != v1alpha1.RouteDirect })
	if len(targets) == 0 {
		return []Result{pass("", "nothing that is known to listen goes direct")}
	}
	out := make([]Result, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() { out[i] = s.reach(ctx, t) })
	}
	all.Wait()
	return out
}

// reach connects to one host that goes direct. The API server is not needed before a node joins.
func (s *subject) reach(ctx context.Context, d Decision) Result {
	u, err := url.Parse(d.URL)
	if err != nil {
		return untested(d.URL, "see PW201", "it is not a URL")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}
	at := net.JoinHostPort(u.Hostname(), port)
	because := fmt.Sprintf("%s, direct: %s", d.What, d.Why)
	fix := "check that it runs and that this node may reach it; if only the proxy reaches it, take it out of NO_PROXY (spec.noProxy.exclude)"
	bad := func(seen ...string) Result {
		if d.Expected == v1alpha1.RouteDirect && d.What == registryWord {
			return fail(at, Now, fix, append(seen, because)...)
		}
		return warn(at, fix, append(seen, because)...)
	}
	addrs, err := s.lookup(ctx, u.Hostname())
	if err != nil {
		return bad(dnsDetail(err))
	}
	dead, alive := s.dialAll(ctx, addrs, port)
	switch {
	case len(alive) == 0:
		return bad(dead...)
	case len(dead) > 0:
		return warn(at, fix, append(append(dead, alive...), because)...)
	}
	return pass(at, append(alive, because)...)
}
