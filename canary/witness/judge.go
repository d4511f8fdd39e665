package witness

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// leastBytes that count as a transfer where the size of what was transferred is not known (32 KiB):
// more than TLS handshakes, tokens and manifests amount to.
const leastBytes = 32 << 10

// Socket is one TCP connection that was opened while watching.
type Socket struct {
	Remote netip.AddrPort
	// Received is the highest count of payload bytes that was seen on it.
	Received uint64
}

// Remote is an address that bytes may come from, and what it means when they do.
type Remote struct {
	Addr  netip.AddrPort
	Route v1alpha1.Route
	// Name of the host that the address was resolved from.
	Name string
}

// Expected is what a transfer may look like.
type Expected struct {
	// Size of what is transferred in bytes; 0 when it is not known.
	Size    int64
	Remotes []Remote
}

// Finding is what the sockets say.
type Finding struct {
	// Route of the bytes, RouteUnknown when no remote was positively identified.
	Route v1alpha1.Route
	// Remote that most of them came from; the zero value when none came.
	Remote netip.AddrPort
	// Name of that remote, where it was an expected one.
	Name string
	// Received bytes by that route (or, when it is unknown, by that remote).
	Received uint64
	// Why the route is unknown, for a person.
	Why string
}

// enough returns the number of bytes that make a remote the source: half of the size, for a
// connection may end between two looks.
func (e Expected) enough() uint64 {
	if e.Size <= 0 {
		return leastBytes
	}
	return uint64(max(e.Size/2, 1))
}

// flow is what came from one remote.
type flow struct {
	remote   netip.AddrPort
	received uint64
	route    v1alpha1.Route
	name     string
}

// Judge says which way the bytes came. A remote that stands for two routes proves neither. A
// registry's or mirror's own address proves more than a proxy's, which serves other transfers of
// the same process too: where both brought enough, the bytes are taken to have come directly.
func Judge(sockets []Socket, expected Expected) Finding {
	flows := collect(sockets, expected.Remotes)
	if len(flows) == 0 {
		return Finding{Route: v1alpha1.RouteUnknown, Why: "no connection of the daemon was seen during the pull"}
	}
	byRoute := map[v1alpha1.Route]uint64{}
	for _, f := range flows {
		byRoute[f.route] += f.received
	}
	for _, route := range []v1alpha1.Route{v1alpha1.RouteDirect, v1alpha1.RouteMirror, v1alpha1.RouteProxy} {
		if byRoute[route] < expected.enough() {
			continue
		}
		if route == v1alpha1.RouteProxy && byRoute[v1alpha1.RouteUnknown] >= expected.enough() {
			break
		}
		main := largest(flows, route)
		return Finding{Route: route, Remote: main.remote, Name: main.name, Received: byRoute[route]}
	}
	return unknown(flows, expected)
}

// Missed reports whether less was seen than a transfer of that size brings, 0 when it is not known:
// on a busy machine a connection may come and go between two looks at the process.
func Missed(sockets []Socket, size int64) bool {
	flows := collect(sockets, nil)
	return len(flows) == 0 || flows[0].received < Expected{Size: size}.enough()
}

// collect sums the sockets by remote, the largest first, and names each remote's route.
func collect(sockets []Socket, remotes []Remote) []flow {
	sums := map[netip.AddrPort]uint64{}
	for _, s := range sockets {
		sums[plain(s.Remote)] += s.Received
	}
	var flows []flow
	for remote, received := range sums {
		f := flow{remote: remote, received: received, route: v1alpha1.RouteUnknown}
		for _, r := range remotes {
			switch {
			case plain(r.Addr) != remote:
			case f.name == "":
				f.route, f.name = r.Route, r.Name
			case f.route != r.Route:
				f.route, f.name = v1alpha1.RouteUnknown, f.name+" and "+r.Name
			}
		}
		flows = append(flows, f)
	}
	slices.SortFunc(flows, func(a, b flow) int {
		switch {
		case a.received > b.received:
			return -1
		case a.received < b.received:
			return 1
		default:
			return a.remote.Compare(b.remote)
		}
	})
	return flows
}

// plain takes an IPv4 address out of its IPv6 form, which dual-stack sockets report.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

func largest(flows []flow, route v1alpha1.Route) flow {
	i := slices.IndexFunc(flows, func(f flow) bool { return f.route == route })
	return flows[i]
}

func unknown(flows []flow, expected Expected) Finding {
	first := flows[0]
	finding := Finding{Route: v1alpha1.RouteUnknown, Remote: first.remote, Name: first.name, Received: first.received}
	switch {
	case first.received < expected.enough():
		finding.Why = fmt.Sprintf("at most %d bytes were seen on the daemon's connections, where %d were looked for", first.received, expected.enough())
	case first.route != v1alpha1.RouteUnknown:
		finding.Why = "the daemon received as much from elsewhere at the same time"
	case first.name != "":
		finding.Why = fmt.Sprintf("%s is the address of %s, so it proves neither", first.remote, first.name)
	default:
		finding.Why = fmt.Sprintf("the bytes came from %s, which is none of %s", first.remote, names(expected.Remotes))
	}
	return finding
}

func names(remotes []Remote) string {
	var parts []string
	for _, r := range remotes {
		parts = append(parts, fmt.Sprintf("%s (%s)", r.Addr, r.Name))
	}
	if len(parts) == 0 {
		return "the expected hosts: none of them resolves"
	}
	return strings.Join(parts, ", ")
}
