package preflight

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

const (
	// dialTimeout of one TCP connection.
	dialTimeout = 3 * time.Second
	// lookupTimeout of one name: a daemon whose pull waits longer for it is no better off.
	lookupTimeout = 4 * time.Second
)

const fixProxy = "correct the host and port in spec.proxy, or have a firewall let this node through"

// endpoint is a host and port to connect to.
type endpoint struct{ host, port string }

func (e endpoint) String() string { return net.JoinHostPort(e.host, e.port) }

// proxies are the host and port of each proxy of the profile, each once.
func (s *subject) proxies() []endpoint {
	var out []endpoint
	for _, v := range s.environmentOf().Vars {
		if v.Name != "HTTP_PROXY" && v.Name != "HTTPS_PROXY" {
			continue
		}
		u, err := url.Parse(v.Value.Reveal())
		if err != nil || u.Hostname() == "" {
			continue // the profile's own rules refuse such a URL
		}
		e := endpoint{host: u.Hostname(), port: u.Port()}
		if e.port == "" {
			e.port = map[string]string{"https": "443"}[u.Scheme]
		}
		if e.port == "" {
			e.port = "80"
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

func noProxy() Result {
	return pass("", "the profile names no proxy: everything goes direct")
}

func checkProxyName(ctx context.Context, s *subject) []Result {
	var out []Result
	for _, p := range s.proxies() {
		out = append(out, s.checkName(ctx, p))
	}
	if len(out) == 0 {
		out = append(out, noProxy())
	}
	return out
}

func (s *subject) checkName(ctx context.Context, p endpoint) Result {
	if _, err := netip.ParseAddr(p.host); err == nil {
		return pass(p.host, "it is an address, so no name server is needed")
	}
	addrs, err := s.lookup(ctx, p.host)
	if err != nil {
		return fail(p.host, Now, "correct the host in spec.proxy, or the name servers of this node (/etc/resolv.conf)", dnsDetail(err))
	}
	return pass(p.host, "it resolves to "+joined(addrs))
}

func joined(addrs []netip.Addr) string {
	var out []string
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}

// lookup returns all addresses of a host, each once and sorted.
func (s *subject) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := s.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range found {
		if a = a.Unmap(); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out, nil
}

func dnsDetail(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsTimeout {
			return fmt.Sprintf("the name servers did not answer for %q in time", dns.Name)
		}
		return fmt.Sprintf("the name %q does not resolve: %s", dns.Name, dns.Err)
	}
	return err.Error()
}

func checkProxyConnection(ctx context.Context, s *subject) []Result {
	var out []Result
	for _, p := range s.proxies() {
		out = append(out, s.checkConnection(ctx, p))
	}
	if len(out) == 0 {
		out = append(out, noProxy())
	}
	return out
}

// checkConnection connects to every address of a proxy: a daemon that meets a dead one first waits
// for it.
func (s *subject) checkConnection(ctx context.Context, p endpoint) Result {
	addrs, err := s.lookup(ctx, p.host)
	if err != nil {
		return untested(p.String(), "see PW301", "its name does not resolve")
	}
	dead, alive := s.dialAll(ctx, addrs, p.port)
	switch {
	case len(alive) == 0:
		return fail(p.String(), Now, fixProxy, dead...)
	case len(dead) > 0:
		return warn(p.String(), "have the dead addresses taken out of the name, or their firewall opened: pulls wait for them", append(dead, alive...)...)
	}
	return pass(p.String(), alive...)
}

// dialAll connects to each address, side by side, and says how that went.
func (s *subject) dialAll(ctx context.Context, addrs []netip.Addr, port string) (dead, alive []string) {
	type answer struct {
		addr string
		took time.Duration
		err  error
	}
	answers := make(chan answer, len(addrs))
	for _, a := range addrs {
		go func() {
			began := time.Now()
			conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port))
			if err == nil {
				err = conn.Close()
			}
			answers <- answer{addr: net.JoinHostPort(a.String(), port), took: time.Since(began), err: err}
		}()
	}
	for range addrs {
		a := <-answers
		if a.err != nil {
			dead = append(dead, fmt.Sprintf("%s: %s", a.addr, dialDetail(a.err)))
		} else {
			alive = append(alive, fmt.Sprintf("%s is open (%s)", a.addr, a.took.Round(time.Millisecond)))
		}
	}
	slices.Sort(dead)
	slices.Sort(alive)
	return dead, alive
}

func dialDetail(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Sprintf("no answer within %s: nothing is there, or a firewall drops the packets", dialTimeout)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}

// aboutProxy says that a failure is the proxy's own and not that of what is behind it.
func aboutProxy(kind canary.FailureKind) bool { return strings.HasPrefix(string(kind), "Proxy") }

// checkProxyAnswer tells apart what a proxy can answer: by the external canary where there is one.
func checkProxyAnswer(_ context.Context, s *subject) []Result {
	if len(s.proxies()) == 0 {
		return []Result{noProxy()}
	}
	var out []Result
	for _, w := range s.walksOf(v1alpha1.CanaryExternal) {
		r := judgeAnswer(w.report.Failure)
		if r.Verdict == Pass && !byProxy(w.report) {
			r = untested("", "see PW402", "the way to the external canary did not lead through the proxy")
		}
		r.Subject = w.canary.Image
		out = append(out, r)
	}
	if len(out) == 0 {
		out = append(out, s.judgeAsked())
	}
	return out
}

func byProxy(r canary.WalkReport) bool {
	return slices.ContainsFunc(r.Hops, func(h canary.Hop) bool { return h.Proxy != "" })
}

func judgeAnswer(f *canary.Failure) Result {
	switch {
	case f == nil:
		return pass("", "it lets this node through")
	case f.Kind == canary.FailProxyUpstream:
		return untested("", f.Fix, fmt.Sprintf("%s at %s: %s", f.Kind, f.Hop, f.Detail))
	case aboutProxy(f.Kind):
		return fail("", Now, f.Fix, fmt.Sprintf("%s at %s: %s", f.Kind, f.Hop, f.Detail))
	default:
		return pass("", "it lets this node through; what failed lies behind it")
	}
}

// askProxy asks the proxy for the internal registry: where no external canary is named, that still
// tells whether a proxy answers, and takes the credentials.
func (s *subject) askProxy(ctx context.Context) *canary.Failure {
	c, units := s.canaryOf(string(v1alpha1.CanaryInternal)), pulling(s.wanted.Units)
	if c == nil || len(units) == 0 {
		return nil
	}
	env := units[0].Environment
	env.Vars = slices.DeleteFunc(slices.Clone(env.Vars), func(v proxyenv.Var) bool { return strings.EqualFold(v.Name, "NO_PROXY") })
	return canary.Walk(ctx, s.walkRequest(*c, env, nil)).Failure
}

func (s *subject) judgeAsked() Result {
	const why = "no external canary is named, so the proxy was asked for the internal registry"
	if s.canaryOf(string(v1alpha1.CanaryInternal)) == nil || len(pulling(s.wanted.Units)) == 0 {
		return untested("", "name a canary in spec.canary", "no canary is named, so there is nothing to ask the proxy for")
	}
	f := s.asked()
	if f != nil && (f.Kind == canary.FailProxyForbidden || f.Kind == canary.FailProxyRefused || f.Kind == canary.FailProxyUpstream) {
		return warn("", "nothing on a closed network; else name an image from outside in spec.canary.external", why, "it answers, and does not go there: "+f.Detail)
	}
	r := judgeAnswer(f)
	r.Seen = append(r.Seen, why)
	return r
}

// checkInterception names who issued the certificates that were shown behind the proxy.
func checkInterception(_ context.Context, s *subject) []Result {
	var out []Result
	for _, w := range s.walks() {
		if f := w.report.Failure; f != nil && f.Kind == canary.FailTLSIntercepted {
			out = append(out, fail(f.Hop, Now, f.Fix, f.Detail))
			continue
		}
		for _, hop := range w.report.Hops {
			if hop.Proxy == "" || hop.Issuer == "" || slices.ContainsFunc(out, func(r Result) bool { return r.Subject == hop.Host }) {
				continue
			}
			if slices.Contains(issuers(s.wanted.CA), hop.Issuer) {
				out = append(out, pass(hop.Host, fmt.Sprintf("its certificate is issued by %q, which the profile's trustedCA holds", hop.Issuer)))
				continue
			}
			out = append(out, pass(hop.Host, fmt.Sprintf("its certificate is issued by %q, which this node trusts by itself", hop.Issuer)))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(s.proxies()) == 0:
		return []Result{noProxy()}
	case s.canaryOf(string(v1alpha1.CanaryExternal)) == nil:
		return []Result{warn("", "nothing on a closed network; else name an image from outside in spec.canary.external", "no external canary is named, so no certificate was seen behind the proxy")}
	}
	return []Result{untested("", "see PW303", "no certificate was seen behind the proxy")}
}

// issuers are the subjects of the certificates in a PEM text, as certificates name their issuer.
func issuers(ca []byte) []string {
	var out []string
	for {
		var block *pem.Block
		if block, ca = pem.Decode(ca); block == nil {
			return out
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, cert.Subject.String())
		}
	}
}
