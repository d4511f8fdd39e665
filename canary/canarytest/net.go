package canarytest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
)

// Names resolves test names to loopback addresses, and keeps what was asked. Loopback itself
// always goes direct in Go, so whatever is to go by a proxy needs a name.
type Names struct {
	mu    sync.Mutex
	hosts map[string]netip.AddrPort
}

// Add makes host[:port] reachable at address. The port that is asked for is replaced, so that a
// name can have its scheme's own.
func (n *Names) Add(host string, address netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = map[string]netip.AddrPort{}
	}
	n.hosts[host] = address
}

// LookupNetIP implements canary.Resolver.
func (n *Names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if address, ok := n.hosts[host]; ok {
		return []netip.Addr{address.Addr()}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n *Names) all() map[string]netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.hosts)
}

// Dial connects to host:port by the names.
func (n *Names) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("splitting %q: %w", address, err)
	}
	addrs, err := n.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, network, net.JoinHostPort(addrs[0].String(), port))
}
