package canary

import (
	"context"
	"net/netip"
	"net/url"
)

// Resolver turns a name into addresses, as *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// hostPort returns a URL's host with its port, the scheme's own when it names none.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	switch u.Scheme {
	case "http":
		return u.Host + ":80"
	case "socks5", "socks5h":
		return u.Host + ":1080"
	default:
		return u.Host + ":443"
	}
}
