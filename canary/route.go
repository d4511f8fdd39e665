package canary

import (
	"context"
	"net/netip"
	"net/url"

	"golang.org/x/net/http/httpproxy"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// Resolver turns a name into addresses, as *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// proxyFor returns the function that says which proxy a URL goes by under an environment, nil for
// none. It is what a Go daemon with that environment does; the calling process's own environment
// plays no part.
func proxyFor(environment proxyenv.Environment) func(*url.URL) (*url.URL, error) {
	config := httpproxy.Config{}
	for _, v := range environment.Vars {
		switch v.Name {
		case "HTTP_PROXY":
			config.HTTPProxy = v.Value.Reveal()
		case "HTTPS_PROXY":
			config.HTTPSProxy = v.Value.Reveal()
		case "NO_PROXY":
			config.NoProxy = v.Value.Reveal()
		}
	}
	return config.ProxyFunc()
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
