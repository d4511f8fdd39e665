//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The proxies of a lab.
const (
	Open = "open" // squid that asks nobody
	Auth = "auth" // squid that asks for user and password
	// Deny is a squid that refuses everything with 403. It runs once a test starts it.
	Deny = "deny"
)

// Proxy is one squid of the lab.
type Proxy struct {
	Name string
	// Addr is where it listens.
	Addr netip.AddrPort
	// User and Password are empty but for [Auth].
	User, Password string

	lab *Lab
}

// AccessEntry is one line of a proxy's access log.
type AccessEntry struct {
	Time   time.Time // when the request or tunnel ended
	Client netip.Addr
	Method string
	Target string // host:port for CONNECT, a URL otherwise
	Status int
	Bytes  int64 // sent to the client
}

// Proxy returns the proxy of that name, nil for an unknown one.
func (l *Lab) Proxy(name string) *Proxy {
	ports := map[string]uint16{Open: 3128, Auth: 3129, Deny: 3130}
	port, ok := ports[name]
	if !ok {
		return nil
	}
	p := &Proxy{Name: name, Addr: netip.AddrPortFrom(l.state.addr(proxyOctet), port), lab: l}
	if name == Auth {
		p.User, p.Password = l.state.Credentials.ProxyUser, l.state.Credentials.ProxyPassword
	}
	return p
}

// URL is the proxy's URL by host name, without credentials.
func (p *Proxy) URL() string { return "http://" + proxyHost + ":" + strconv.Itoa(int(p.Addr.Port())) }

// URLWithCredentials is [Proxy.URL] with user and password percent-encoded.
func (p *Proxy) URLWithCredentials() string {
	u := url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", proxyHost, p.Addr.Port())}
	if p.User != "" {
		u.User = url.UserPassword(p.User, p.Password)
	}
	return u.String()
}

func (p *Proxy) unit() string           { return "squid-" + p.Name }
func (p *Proxy) dir(elem string) string { return p.lab.state.path("squid", p.Name, elem) }

// Stop ends the proxy, so that connections to it are refused.
func (p *Proxy) Stop(ctx context.Context) error { return p.lab.stopService(ctx, p.unit()) }

// tunnelIdle is when squid closes a silent tunnel. It logs a tunnel when that
// ends, and clients keep theirs for a minute and more.
const tunnelIdle = 3 * time.Second

// Start starts the proxy, also again after [Proxy.Stop].
func (p *Proxy) Start(ctx context.Context) error {
	if err := p.configure(); err != nil {
		return err
	}
	id, err := p.lab.startService(serviceSpec{
		name: p.unit(), ns: p.lab.state.servicesNS(),
		argv: []string{"squid", "-N", "-f", p.dir("squid.conf")},
	})
	if err != nil {
		return err
	}
	return p.lab.awaitListening(ctx, p.unit(), id, p.Addr)
}

func (p *Proxy) configure() error {
	if err := os.MkdirAll(p.dir(""), 0o755); err != nil {
		return fmt.Errorf("creating the folder of proxy %q: %w", p.Name, err)
	}
	// squid gives up root for this user, who must be able to write its logs.
	if err := chownTo(p.dir(""), "proxy"); err != nil {
		return err
	}
	lines := []string{
		"http_port " + p.Addr.String(),
		"visible_hostname " + proxyHost,
		"pid_filename none",
		"cache deny all",
		"cache_mem 8 MB",
		"shutdown_lifetime 0 seconds",
		"read_timeout " + strconv.Itoa(int(tunnelIdle.Seconds())) + " seconds",
		"hosts_file " + p.dir("hosts"),
		// Nobody answers there: only the hosts file knows names.
		"dns_nameservers 127.0.0.1",
		"dns_timeout 1 second",
		"logformat lab %ts.%03tu %>a %rm %ru %>Hs %<st",
		"access_log stdio:" + p.dir("access.log") + " lab",
		"buffered_logs off",
		"cache_log " + p.dir("cache.log"),
		"coredump_dir " + p.dir(""),
	}
	switch p.Name {
	case Auth:
		lines = append(lines,
			"auth_param basic program /usr/lib/squid/basic_ncsa_auth "+p.dir("passwd"),
			"auth_param basic children 2 startup=1 idle=1",
			"auth_param basic realm corp",
			"acl known proxy_auth REQUIRED",
			"http_access allow known",
		)
		if err := writeHtpasswd(p.dir("passwd"), p.User, p.Password, 0o600); err != nil {
			return err
		}
		if err := chownTo(p.dir("passwd"), "proxy"); err != nil {
			return err
		}
		lines = append(lines, "http_access deny all")
	case Deny:
		lines = append(lines, "http_access deny all")
	default:
		lines = append(lines, "http_access allow all")
	}
	if err := os.WriteFile(p.dir("hosts"), []byte(hostsFile("", p.lab.state.allHosts())), 0o644); err != nil {
		return fmt.Errorf("writing the hosts file of proxy %q: %w", p.Name, err)
	}
	if err := os.WriteFile(p.dir("squid.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the configuration of proxy %q: %w", p.Name, err)
	}
	return nil
}

func (l *Lab) startProxies(ctx context.Context) error {
	err := together(ctx, []func(context.Context) error{l.Proxy(Open).Start, l.Proxy(Auth).Start})
	if err == nil {
		l.say("proxies are up: %s, %s", l.Proxy(Open).URL(), l.Proxy(Auth).URL())
	}
	return err
}

// AccessLog returns the requests that have ended so far. A silent tunnel is
// ended, and so logged, after 3 seconds.
func (p *Proxy) AccessLog() ([]AccessEntry, error) {
	raw, err := os.ReadFile(p.dir("access.log"))
	if err != nil {
		return nil, fmt.Errorf("reading the log of proxy %q: %w", p.Name, err)
	}
	return parseAccessLog(string(raw))
}

// WaitAccess waits until the log has an entry that match accepts, and returns it.
func (p *Proxy) WaitAccess(ctx context.Context, timeout time.Duration, match func(AccessEntry) bool) (AccessEntry, error) {
	var found AccessEntry
	err := eventually(ctx, timeout, fmt.Sprintf("waiting for a request in the log of proxy %q", p.Name), func() error {
		entries, err := p.AccessLog()
		if err != nil {
			return err
		}
		for _, e := range entries {
			if match(e) {
				found = e
				return nil
			}
		}
		return fmt.Errorf("none of its %d entries matches", len(entries))
	})
	return found, err
}

func parseAccessLog(text string) ([]AccessEntry, error) {
	var entries []AccessEntry
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break // squid is writing it
		}
		f := strings.Fields(line)
		if len(f) != 6 {
			return nil, fmt.Errorf("parsing the access log: %q has %d fields instead of 6", line, len(f))
		}
		seconds, err1 := strconv.ParseFloat(f[0], 64)
		client, err2 := netip.ParseAddr(f[1])
		status, err3 := strconv.Atoi(f[4])
		size, err4 := strconv.ParseInt(f[5], 10, 64)
		for _, err := range []error{err1, err2, err3, err4} {
			if err != nil {
				return nil, fmt.Errorf("parsing the access log line %q: %w", line, err)
			}
		}
		entries = append(entries, AccessEntry{
			Time: time.UnixMilli(int64(seconds * 1000)), Client: client, Method: f[2], Target: f[3], Status: status, Bytes: size,
		})
	}
	return entries, nil
}

// chownTo gives path to a user of the host.
func chownTo(path, name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("giving %q to %q: %w", filepath.Base(path), name, err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("giving %q to %q: no numeric ids", filepath.Base(path), name)
	}
	if err := os.Chown(path, uid, gid); err != nil {
		return fmt.Errorf("giving %q to %q: %w", filepath.Base(path), name, err)
	}
	return nil
}
