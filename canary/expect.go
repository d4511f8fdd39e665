package canary

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/witness"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// endpoint is a host that bytes may come from.
type endpoint struct {
	host  string // host:port
	route v1alpha1.Route
}

// expectation is which way an image is to come.
type expectation struct {
	// route of the host that is tried first.
	route v1alpha1.Route
	// accepted are the routes of all hosts that are tried.
	accepted []v1alpha1.Route
	// hosts are the URLs that content is taken from, in order.
	hosts []string
	// endpoints that bytes may come from, expected or not.
	endpoints []endpoint
	// doubt says why the runtime may not go by its own host list; empty when it does.
	doubt string
}

// expect works out the expectation. The registry's own route follows from the role, and not from
// the environment: an internal registry that NO_PROXY lacks is just what is to be found out. A
// mirror's follows from the environment. It fails for what is no image.
func expect(role v1alpha1.CanaryRole, image string, runtime runtimes.Runtime, environment proxyenv.Environment) (expectation, error) {
	hops, err := runtimes.ExpectedHops(runtime, image)
	if err != nil {
		return expectation{}, err
	}
	own := v1alpha1.RouteDirect
	if role == v1alpha1.CanaryExternal {
		own = v1alpha1.RouteProxy
	}
	var e expectation
	matcher := proxyenv.NewMatcher(environment)
	for _, hop := range hops {
		u, err := url.Parse(hop.URL)
		if err != nil || !hop.Pulls {
			continue // no layers come from it
		}
		route, where := own, v1alpha1.RouteDirect
		if hop.Mirror {
			where = v1alpha1.RouteMirror
			if route = where; !matcher.Decide(hop.URL).Direct {
				route = v1alpha1.RouteProxy
			}
		}
		if e.doubt == "" {
			e.doubt = hop.Doubt
		}
		e.hosts = append(e.hosts, hop.URL)
		e.accepted = append(e.accepted, route)
		e.endpoints = append(e.endpoints, endpoint{hostPort(u), where})
	}
	if len(e.accepted) > 0 {
		e.route = e.accepted[0]
	}
	e.endpoints = append(e.endpoints, proxies(environment)...)
	return e, nil
}

// proxies returns the proxies of an environment.
func proxies(environment proxyenv.Environment) []endpoint {
	var found []endpoint
	for _, v := range environment.Vars {
		switch v.Name {
		case "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy":
		default:
			continue
		}
		u, err := url.Parse(v.Value.Reveal())
		if err != nil || u.Host == "" {
			continue
		}
		if e := (endpoint{hostPort(u), v1alpha1.RouteProxy}); !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	return found
}

// resolve looks the endpoints' addresses up. One that does not resolve is left out: an external
// registry's name need not resolve on a node behind a proxy.
func resolve(ctx context.Context, resolver Resolver, endpoints []endpoint) []witness.Remote {
	var remotes []witness.Remote
	for _, e := range endpoints {
		u := url.URL{Host: e.host}
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			continue
		}
		addrs, err := resolver.LookupNetIP(ctx, "ip", u.Hostname())
		if err != nil {
			continue
		}
		for _, addr := range addrs {
			remote := witness.Remote{Addr: netip.AddrPortFrom(addr.Unmap(), uint16(port)), Route: e.route, Name: e.host}
			remotes = merge(remotes, []witness.Remote{remote})
		}
	}
	return remotes
}

// merge returns the remotes of both, each once.
func merge(remotes, more []witness.Remote) []witness.Remote {
	for _, remote := range more {
		if !slices.Contains(remotes, remote) {
			remotes = append(remotes, remote)
		}
	}
	return remotes
}
