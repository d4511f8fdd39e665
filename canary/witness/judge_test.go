package witness_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/witness"
)

const (
	proxyAddr    = "10.0.0.9:3128"
	registryAddr = "10.0.0.5:5000"
	mirrorAddr   = "10.0.0.6:5000"
	elsewhere    = "203.0.113.7:443"
	mib          = 1 << 20
)

func at(addr string) netip.AddrPort { return netip.MustParseAddrPort(addr) }

func TestJudge(t *testing.T) {
	remotes := []witness.Remote{
		{Addr: at(proxyAddr), Route: v1alpha1.RouteProxy, Name: "the proxy"},
		{Addr: at(registryAddr), Route: v1alpha1.RouteDirect, Name: "the registry"},
		{Addr: at(mirrorAddr), Route: v1alpha1.RouteMirror, Name: "the mirror"},
	}
	socket := func(addr string, received uint64) witness.Socket {
		return witness.Socket{Remote: at(addr), Received: received}
	}
	for _, tt := range []struct {
		name    string
		sockets []witness.Socket
		size    int64
		remotes []witness.Remote
		route   v1alpha1.Route
		remote  string
		why     string
	}{
		{"the proxy brought it", []witness.Socket{socket(proxyAddr, mib+5000)}, mib, remotes, v1alpha1.RouteProxy, proxyAddr, ""},
		{"C46 the proxy brought it although it was internal", []witness.Socket{socket(registryAddr, 4000), socket(proxyAddr, mib)}, mib, remotes, v1alpha1.RouteProxy, proxyAddr, ""},
		{"C47 the registry brought it although it was external", []witness.Socket{socket(registryAddr, mib), socket(proxyAddr, 4000)}, mib, remotes, v1alpha1.RouteDirect, registryAddr, ""},
		{"C62 the mirror brought it", []witness.Socket{socket(mirrorAddr, mib)}, mib, remotes, v1alpha1.RouteMirror, mirrorAddr, ""},
		{"several connections add up", []witness.Socket{socket(proxyAddr, mib/4), socket(proxyAddr, mib/4)}, mib, remotes, v1alpha1.RouteProxy, proxyAddr, ""},
		{"IPv4 in IPv6", []witness.Socket{{Remote: at("[::ffff:10.0.0.9]:3128"), Received: mib}}, mib, remotes, v1alpha1.RouteProxy, proxyAddr, ""},
		{"another pull by the proxy does not hide the registry", []witness.Socket{socket(registryAddr, mib), socket(proxyAddr, 9*mib)}, mib, remotes, v1alpha1.RouteDirect, registryAddr, ""},
		{"as much from elsewhere", []witness.Socket{socket(proxyAddr, 2*mib), socket(elsewhere, mib)}, mib, remotes, v1alpha1.RouteUnknown, proxyAddr, "as much from elsewhere"},
		{"from elsewhere alone", []witness.Socket{socket(elsewhere, mib)}, mib, remotes, v1alpha1.RouteUnknown, elsewhere, "none of"},
		{"too little", []witness.Socket{socket(proxyAddr, 4000)}, mib, remotes, v1alpha1.RouteUnknown, proxyAddr, "at most 4000 bytes"},
		{"nothing", nil, mib, remotes, v1alpha1.RouteUnknown, "", "no connection"},
		{"unknown size, a transfer", []witness.Socket{socket(proxyAddr, 40<<10)}, 0, remotes, v1alpha1.RouteProxy, proxyAddr, ""},
		{"unknown size, only talk", []witness.Socket{socket(proxyAddr, 8<<10)}, 0, remotes, v1alpha1.RouteUnknown, proxyAddr, "at most"},
		{"proxy and registry at one address", []witness.Socket{socket(proxyAddr, mib)}, mib,
			append(remotes[:1:1], witness.Remote{Addr: at(proxyAddr), Route: v1alpha1.RouteDirect, Name: "the registry"}),
			v1alpha1.RouteUnknown, proxyAddr, "the proxy and the registry"},
		{"the same port of another host", []witness.Socket{socket("10.0.0.8:3128", mib)}, mib, remotes, v1alpha1.RouteUnknown, "10.0.0.8:3128", "none of"},
		{"nothing resolves", []witness.Socket{socket(proxyAddr, mib)}, mib, nil, v1alpha1.RouteUnknown, proxyAddr, "none of them resolves"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := witness.Judge(tt.sockets, witness.Expected{Size: tt.size, Remotes: tt.remotes})
			if got.Route != tt.route {
				t.Errorf("route is %q (%s), want %q", got.Route, got.Why, tt.route)
			}
			var remote netip.AddrPort
			if tt.remote != "" {
				remote = at(tt.remote)
			}
			if got.Remote != remote {
				t.Errorf("remote is %s, want %s", got.Remote, remote)
			}
			if (got.Route == v1alpha1.RouteUnknown) != (got.Why != "") || !strings.Contains(got.Why, tt.why) {
				t.Errorf("why is %q, want it to say %q", got.Why, tt.why)
			}
		})
	}
}
