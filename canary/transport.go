package canary

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// firstBytes of an answer are kept to tell protocols apart.
const firstBytes = 16

// trip is what is seen of one request on its way.
type trip struct {
	mu sync.Mutex
	// proxy that the request goes by, nil when direct, and why.
	proxy *url.URL
	why   string
	// remote is the address that the connection was made to, and first what came from it first.
	remote string
	first  []byte
	// dialErr of the connection.
	dialErr error
	// connect is the status of the proxy's answer to CONNECT; 0 when there was none. schemes are
	// the ways of authentication that it offers.
	connect int
	schemes []string
}

type tripKey struct{}

// connectError is a proxy's refusal of a tunnel.
type connectError struct{ status int }

func (e *connectError) Error() string {
	return fmt.Sprintf("asking the proxy for a tunnel: it answered %d %s", e.status, http.StatusText(e.status))
}

// recorder sends requests by the ways of an environment and writes down each as a hop.
type recorder struct {
	next    http.RoundTripper
	matcher *proxyenv.Matcher
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	redact  func(string) string
	purpose func(*http.Request) Purpose
	refuse  func(*url.URL) error
	rewrite func(*http.Request) *http.Request
	mirror  string
	// patience with one step: a connection, a handshake, an answer's first byte.
	patience time.Duration

	mu   sync.Mutex
	hops []Hop
}

// newTransport returns a transport that is ruled by the given functions alone: the process's own
// proxy variables are not looked at, and every request has a connection of its own, so that each
// hop is seen from its first packet.
func newTransport(r *recorder, roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy: func(req *http.Request) (*url.URL, error) {
			decision := r.matcher.Decide(req.URL.String())
			if decision.Err != nil {
				return nil, decision.Err
			}
			var proxy *url.URL
			if !decision.Direct {
				var err error
				if proxy, err = url.Parse(decision.Proxy.Reveal()); err != nil {
					return nil, fmt.Errorf("parsing proxy %q: it is no URL", decision.Proxy)
				}
			}
			if t, ok := req.Context().Value(tripKey{}).(*trip); ok {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.proxy, t.why = proxy, decision.Why
			}
			return proxy, nil
		},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := r.dial(ctx, network, address)
			t, ok := ctx.Value(tripKey{}).(*trip)
			if !ok {
				return conn, err
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			if err != nil {
				t.dialErr = err
				return nil, err
			}
			t.remote = conn.RemoteAddr().String()
			// The library waits a minute for the answer to CONNECT; a silent one shows sooner.
			if err := conn.SetReadDeadline(time.Now().Add(r.patience)); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return &watchedConn{Conn: conn, trip: t}, nil
		},
		OnProxyConnectResponse: func(ctx context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if t, ok := ctx.Value(tripKey{}).(*trip); ok {
				t.mu.Lock()
				t.connect = answer.StatusCode
				for _, offer := range answer.Header.Values("Proxy-Authenticate") {
					scheme, _, _ := strings.Cut(offer, " ")
					t.schemes = append(t.schemes, scheme)
				}
				t.mu.Unlock()
			}
			if answer.StatusCode != http.StatusOK {
				return &connectError{answer.StatusCode}
			}
			return nil
		},
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   r.patience,
		ResponseHeaderTimeout: r.patience,
		DisableKeepAlives:     true,
	}
}

// watchedConn keeps the first bytes that came in.
type watchedConn struct {
	net.Conn
	trip *trip
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.trip.mu.Lock()
	defer c.trip.mu.Unlock()
	if n > 0 && len(c.trip.first) == 0 {
		err = errors.Join(err, c.SetReadDeadline(time.Time{}))
	}
	if room := firstBytes - len(c.trip.first); room > 0 {
		c.trip.first = append(c.trip.first, p[:min(n, room)]...)
	}
	return n, err
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.refuse(req.URL); err != nil {
		return nil, err
	}
	t := &trip{}
	purpose := r.purpose(req)
	began := time.Now()
	sent := r.rewrite(req).WithContext(context.WithValue(req.Context(), tripKey{}, t))
	answer, err := r.next.RoundTrip(sent)
	t.mu.Lock()
	defer t.mu.Unlock()
	hop := Hop{
		Purpose: purpose, URL: shown(sent.URL), Host: sent.URL.Host, hostPort: hostPort(sent.URL),
		Route: v1alpha1.RouteDirect, Why: t.why, Remote: t.remote, Took: time.Since(began),
	}
	switch {
	case t.proxy != nil:
		hop.Route, hop.Proxy = v1alpha1.RouteProxy, hostPort(t.proxy)
	case r.mirror == sent.URL.Host:
		hop.Route = v1alpha1.RouteMirror
	}
	if err != nil {
		hop.Failure = classify(trace{
			trip: t, target: sent.URL, err: err, redact: r.redact, patience: r.patience,
			speaksTLS: func() bool { return r.speaksTLS(req.Context(), t.proxy) },
		})
	} else {
		hop.Status = answer.StatusCode
		if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
			hop.Issuer = answer.TLS.PeerCertificates[0].Issuer.String()
		}
		hop.Failure = judgeStatus(answer, purpose, t.proxy, sent.URL)
	}
	r.mu.Lock()
	r.hops = append(r.hops, hop)
	r.mu.Unlock()
	return answer, err
}

// speaksTLS says whether a TLS handshake with the proxy succeeds. Its certificate does not matter:
// nothing is sent, only the protocol is found out.
func (r *recorder) speaksTLS(ctx context.Context, proxy *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	conn, err := r.dial(ctx, "tcp", hostPort(proxy))
	if err != nil {
		return false
	}
	client := tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), InsecureSkipVerify: true}) // #nosec G402 -- only the protocol is probed
	defer client.Close()
	return client.HandshakeContext(ctx) == nil
}

// last returns the failure of the last hop, or nil.
func (r *recorder) last() *Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hops) == 0 {
		return nil
	}
	return r.hops[len(r.hops)-1].Failure
}

func (r *recorder) taken() []Hop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.hops)
}

// fail marks the last hop with a failure that showed after its answer's head.
func (r *recorder) fail(failure *Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.hops); n > 0 {
		r.hops[n-1].Failure = failure
	}
}

// shown returns a URL without what may be secret in it: signed queries and user information.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// dialer connects to a name's addresses in the resolver's order until one answers.
// Each gets patience, and so does the name.
func dialer(resolver Resolver, patience time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("splitting address %q: %w", address, err)
		}
		lookup, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		addrs, err := resolver.LookupNetIP(lookup, "ip", host)
		if err != nil {
			return nil, err
		}
		var failed []error
		for _, addr := range addrs {
			d := net.Dialer{Timeout: patience}
			conn, err := d.DialContext(ctx, network, net.JoinHostPort(addr.Unmap().String(), port))
			if err == nil {
				return conn, nil
			}
			failed = append(failed, err)
		}
		return nil, errors.Join(failed...)
	}
}
