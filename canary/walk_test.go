package canary_test

import (
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/canary/canarytest"
	"github.com/proxyward/proxyward/canary/imagebuild"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

const (
	plantedPassword = "pl@nted:s3cret%40"
	plantedToken    = "planted-token"
)

// site is a registry with an image, a proxy, and what is needed to reach them.
type site struct {
	names    *canarytest.Names
	ca       *canarytest.CA
	registry *canarytest.Registry
	image    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{names: &canarytest.Names{}, ca: canarytest.NewCA(t, "site CA")}
	s.registry = canarytest.NewRegistry(t, s.names, s.ca, "registry.site.test")
	image, err := imagebuild.New(0, "amd64")
	if err != nil {
		t.Fatalf("making an image: %v", err)
	}
	s.image = s.registry.Push(t, "proxyward/canary:1", image)
	return s
}

func (s *site) request(proxyURL, noProxy string) canary.WalkRequest {
	return canary.WalkRequest{
		Image: s.image, CA: s.ca.PEM, Roots: x509.NewCertPool(), Resolver: s.names,
		Environment: environment(proxyURL, noProxy), Timeout: 30 * time.Second, Patience: time.Second,
	}
}

func environment(proxyURL, noProxy string) proxyenv.Environment {
	return proxyenv.Environment{Vars: []proxyenv.Var{
		{Name: "HTTPS_PROXY", Value: proxyenv.NewSecret(proxyURL, "")},
		{Name: "HTTP_PROXY", Value: proxyenv.NewSecret(proxyURL, "")},
		{Name: "NO_PROXY", Value: proxyenv.PlainSecret(noProxy)},
	}}
}

func TestWalkReachesALayer(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://nobody.invalid:1") // the process's own plays no part
	s := newSite(t)
	proxy := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{User: "svc", Password: plantedPassword})
	through := fmt.Sprintf("http://svc:pl%%40nted%%3As3cret%%2540@proxy.site.test:%d", proxy.Addr.Port())
	for _, tt := range []struct {
		name, proxy, noProxy string
		route                v1alpha1.Route
	}{
		{"direct without a proxy", "", "", v1alpha1.RouteDirect},
		{"by the proxy", through, "", v1alpha1.RouteProxy},
		{"around the proxy", through, "registry.site.test", v1alpha1.RouteDirect},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := canary.Walk(t.Context(), s.request(tt.proxy, tt.noProxy))
			if report.Failure != nil {
				t.Fatalf("Walk failed: %v", report.Failure)
			}
			if report.Size < imagebuild.DefaultSize || !strings.HasPrefix(report.Digest, "sha256:") {
				t.Errorf("Walk found digest %q and %d bytes, want the canary's", report.Digest, report.Size)
			}
			var purposes []canary.Purpose
			for _, hop := range report.Hops {
				purposes = append(purposes, hop.Purpose)
				if hop.Route != tt.route {
					t.Errorf("hop %+v has route %q, want %q", hop, hop.Route, tt.route)
				}
				wantRemote := s.registry.Addr.String()
				if tt.route == v1alpha1.RouteProxy {
					wantRemote = proxy.Addr.String()
				}
				if hop.Remote != wantRemote {
					t.Errorf("hop %q was made to %q, want %q", hop.URL, hop.Remote, wantRemote)
				}
				if !strings.Contains(hop.Issuer, "site CA") {
					t.Errorf("hop %q names issuer %q, want the site's", hop.URL, hop.Issuer)
				}
			}
			if got := fmt.Sprint(purposes); got != "[registry manifest blob]" {
				t.Errorf("hops are %s", got)
			}
		})
	}
}

func TestC17_RedirectedBlobNamesHostAndRoute(t *testing.T) {
	s := newSite(t)
	proxy := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{})
	blobs := canarytest.NewRegistry(t, s.names, s.ca, "blobs.cdn.test")
	s.registry.Rule(canarytest.Rule{BlobsAt: blobs.Host})
	request := s.request(fmt.Sprintf("http://proxy.site.test:%d", proxy.Addr.Port()), "registry.site.test")

	report := canary.Walk(t.Context(), request)
	if report.Failure == nil || report.Failure.Kind != canary.FailNotFound || report.Failure.Hop != blobs.Host {
		t.Fatalf("Walk ended with %v, want NotFound at the second host %q", report.Failure, blobs.Host)
	}
	last := report.Hops[len(report.Hops)-1]
	if last.Purpose != canary.PurposeRedirect || last.Host != blobs.Host || last.Route != v1alpha1.RouteProxy {
		t.Errorf("last hop is %+v, want the redirect to %q by the proxy", last, blobs.Host)
	}
	if strings.Contains(fmt.Sprintf("%+v", report), "sealed") {
		t.Error("the signed query of the redirect is in the report")
	}

	image, err := imagebuild.New(0, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	s.registry.Push(t, "proxyward/canary:1", image)
	blobs.Push(t, "proxyward/canary:1", image)
	if report := canary.Walk(t.Context(), request); report.Failure != nil {
		t.Errorf("Walk failed once the second host has the blob: %v", report.Failure)
	}
}

func TestC50_TokenRealmAtAnotherHostIsAHop(t *testing.T) {
	s := newSite(t)
	tokens := canarytest.NewRegistry(t, s.names, s.ca, "auth.site.test")
	s.registry.Rule(canarytest.Rule{Realm: "https://" + tokens.Host + "/token"})
	proxy := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{})
	report := canary.Walk(t.Context(), s.request(fmt.Sprintf("http://proxy.site.test:%d", proxy.Addr.Port()), "registry.site.test"))
	if report.Failure != nil {
		t.Fatalf("Walk failed: %v", report.Failure)
	}
	var found bool
	for _, hop := range report.Hops {
		if hop.Purpose == canary.PurposeToken {
			found = true
			if hop.Host != tokens.Host || hop.Route != v1alpha1.RouteProxy {
				t.Errorf("token hop is %+v, want host %q by the proxy", hop, tokens.Host)
			}
		}
	}
	if !found {
		t.Errorf("no hop asks for a token: %+v", report.Hops)
	}
}

func TestC48_ProxyFailuresAreToldApart(t *testing.T) {
	s := newSite(t)
	listen := func(t *testing.T, answer func(net.Conn)) int { return listener(t, s.names, answer) }
	for _, tt := range []struct {
		name  string
		start func(t *testing.T) string // returns the proxy's URL
		want  canary.FailureKind
		says  string
	}{
		{"407 without credentials", func(t *testing.T) string {
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{User: "svc", Password: "x"})
			return fmt.Sprintf("http://proxy.site.test:%d", p.Addr.Port())
		}, canary.FailProxyAuthRequired, "no credentials were sent (it offers Basic)"},
		{"407 to wrong credentials", func(t *testing.T) string {
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{User: "svc", Password: "x"})
			return fmt.Sprintf("http://svc:pl%%40nted%%3As3cret%%2540@proxy.site.test:%d", p.Addr.Port())
		}, canary.FailProxyAuthRequired, `refused the credentials of user "svc"`},
		{"407 to a token in place of a name", func(t *testing.T) string {
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{User: "svc", Password: "x"})
			return fmt.Sprintf("http://%s:@proxy.site.test:%d", plantedToken, p.Addr.Port())
		}, canary.FailProxyAuthRequired, "the user that was sent without a password"},
		{"403", func(t *testing.T) string {
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{Status: http.StatusForbidden})
			return fmt.Sprintf("http://proxy.site.test:%d", p.Addr.Port())
		}, canary.FailProxyForbidden, "403"},
		{"503", func(t *testing.T) string {
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{Status: http.StatusServiceUnavailable})
			return fmt.Sprintf("http://proxy.site.test:%d", p.Addr.Port())
		}, canary.FailProxyUpstream, "cannot reach"},
		{"name does not resolve", func(*testing.T) string { return "http://nobody.site.test:3128" }, canary.FailProxyDNS, "nobody.site.test"},
		{"nothing listens", func(t *testing.T) string {
			return fmt.Sprintf("http://proxy.site.test:%d", closedPort(t, s.names))
		}, canary.FailProxyConnect, "connecting to the proxy failed"},
		{"accepts and is silent", func(t *testing.T) string {
			return fmt.Sprintf("http://proxy.site.test:%d", listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }))
		}, canary.FailProxyTimeout, "did not answer"},
		{"is not HTTP", func(t *testing.T) string {
			return fmt.Sprintf("http://proxy.site.test:%d", listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n") }))
		}, canary.FailProxyNotHTTP, "SSH-2.0"},
		{"closes at once", func(t *testing.T) string {
			return fmt.Sprintf("http://proxy.site.test:%d", listen(t, func(net.Conn) {}))
		}, canary.FailProxyNotHTTP, "closed"},
		{"is TLS only, URL says http", func(t *testing.T) string {
			cert := s.ca.Issue(t, "proxy.site.test")
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{TLS: &cert})
			return fmt.Sprintf("http://proxy.site.test:%d", p.Addr.Port())
		}, canary.FailProxyIsTLS, "TLS"},
		{"is plain, URL says https", func(t *testing.T) string {
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{})
			return fmt.Sprintf("https://proxy.site.test:%d", p.Addr.Port())
		}, canary.FailProxyIsPlain, "TLS handshake"},
		{"TLS with an unknown certificate", func(t *testing.T) string {
			cert := canarytest.NewCA(t, "proxy's own CA").Issue(t, "proxy.site.test")
			p := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{TLS: &cert})
			return fmt.Sprintf("https://proxy.site.test:%d", p.Addr.Port())
		}, canary.FailProxyUntrusted, "proxy's own CA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := canary.Walk(t.Context(), s.request(tt.start(t), ""))
			if report.Failure == nil || report.Failure.Kind != tt.want {
				t.Fatalf("Walk ended with %v, want %s", report.Failure, tt.want)
			}
			if !strings.Contains(report.Failure.Detail, tt.says) {
				t.Errorf("detail %q does not say %q", report.Failure.Detail, tt.says)
			}
			if report.Failure.Fix == "" || !strings.HasPrefix(report.Failure.Hop, "proxy.site.test:") && tt.want != canary.FailProxyDNS {
				t.Errorf("failure %+v lacks a fix or the proxy's name", report.Failure)
			}
			if all := fmt.Sprintf("%+v %v", report, report.Failure); strings.Contains(all, "nted") || strings.Contains(all, "s3cret") {
				t.Errorf("the password is in the report: %s", all)
			}
		})
	}
}

func TestC49_InterceptionNamesTheIssuer(t *testing.T) {
	s := newSite(t)
	proxy := canarytest.NewProxy(t, s.names, "proxy.site.test", canarytest.ProxyRule{})
	request := s.request(fmt.Sprintf("http://proxy.site.test:%d", proxy.Addr.Port()), "")
	request.CA = nil
	if f := canary.Walk(t.Context(), request).Failure; f == nil || f.Kind != canary.FailTLSIntercepted || !strings.Contains(f.Detail, "site CA") {
		t.Errorf("by the proxy Walk ended with %v, want TLSIntercepted naming the issuer", f)
	}
	request.Environment = environment("", "")
	if f := canary.Walk(t.Context(), request).Failure; f == nil || f.Kind != canary.FailTLSUnknownCA || !strings.Contains(f.Detail, "site CA") {
		t.Errorf("direct Walk ended with %v, want TLSUnknownCA naming the issuer", f)
	}
}

func TestWalkTellsRegistryFailuresApart(t *testing.T) {
	for _, tt := range []struct {
		name         string
		rule         canarytest.Rule
		want         canary.FailureKind
		inconclusive bool
	}{
		{"C61 429", canarytest.Rule{Status: http.StatusTooManyRequests}, canary.FailRateLimited, true},
		{"C61 503", canarytest.Rule{Status: http.StatusServiceUnavailable}, canary.FailRegistryError, true},
		{"403", canarytest.Rule{Status: http.StatusForbidden}, canary.FailRegistryAuth, false},
		{"404", canarytest.Rule{Status: http.StatusNotFound}, canary.FailNotFound, false},
		{"changed bytes", canarytest.Rule{Garble: true}, canary.FailBlobMismatch, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.registry.Rule(tt.rule)
			failure := canary.Walk(t.Context(), s.request("", "")).Failure
			if failure == nil || failure.Kind != tt.want || failure.Inconclusive() != tt.inconclusive {
				t.Fatalf("Walk ended with %+v, want %s, inconclusive %v", failure, tt.want, tt.inconclusive)
			}
		})
	}
}

func TestC62_WalkTriesTheMirrorFirst(t *testing.T) {
	s := newSite(t)
	mirror := canarytest.NewRegistry(t, s.names, s.ca, "mirror.site.test")
	request := s.request("", "")
	request.Hosts = []string{"https://" + mirror.Host, "https://" + s.registry.Host}
	report := canary.Walk(t.Context(), request)
	if report.Failure != nil {
		t.Fatalf("Walk failed although the registry itself has the image: %v", report.Failure)
	}
	first := report.Hops[0]
	if first.Route != v1alpha1.RouteMirror || first.Host != mirror.Host {
		t.Errorf("first hop is %+v, want the mirror", first)
	}
	if asked := strings.Join(mirror.Requests(), "\n"); !strings.Contains(asked, "ns=registry.site.test") {
		t.Errorf("the mirror was not told the registry: %s", asked)
	}
}

func TestWalkRefusesWhatIsNoImage(t *testing.T) {
	failure := canary.Walk(t.Context(), canary.WalkRequest{Image: "Not An Image"}).Failure
	if failure == nil || failure.Kind != canary.FailBadImage {
		t.Fatalf("Walk ended with %v, want BadImage", failure)
	}
}

// listener accepts under proxy.site.test until the test ends and returns its port.
func listener(t *testing.T, names *canarytest.Names, answer func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answer(conn)
			}()
		}
	}()
	names.Add("proxy.site.test", netip.MustParseAddrPort(l.Addr().String()))
	return l.Addr().(*net.TCPAddr).Port
}

func closedPort(t *testing.T, names *canarytest.Names) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	names.Add("proxy.site.test", netip.MustParseAddrPort(l.Addr().String()))
	l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
