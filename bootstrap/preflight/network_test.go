package preflight

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/canarytest"
	"github.com/proxyward/proxyward/internal/secrettest"
)

// raw listens at loopback under the proxy's name and does with each connection as it is told.
func (s *site) raw(serve func(net.Conn)) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	addr := netip.MustParseAddrPort(l.Addr().String())
	s.names.Add("raw.corp.example", addr)
	s.proxyAt("http://raw.corp.example:" + strings.TrimPrefix(l.Addr().String(), "127.0.0.1:"))
}

func TestC48_ProxyAnswersAreToldApart(t *testing.T) {
	for _, test := range []struct {
		name, kind, fix string
		proxy           func(*site)
	}{
		{"407", "ProxyAuthRequired", "username and password", func(s *site) { s.proxy(canarytest.ProxyRule{User: "svc", Password: "wanted"}) }},
		{"403", "ProxyForbidden", "rules allow CONNECT", func(s *site) { s.proxy(canarytest.ProxyRule{Status: 403}) }},
		{"hangs", "ProxyTimeout", "check that the proxy runs", func(s *site) { s.raw(func(c net.Conn) { io.Copy(io.Discard, c) }) }},
		{"no HTTP", "ProxyNotHTTP", "no HTTP proxy", func(s *site) {
			s.raw(func(c net.Conn) { c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")); c.Close() })
		}},
		{"TLS only", "ProxyIsTLS", "https://", func(s *site) {
			cert := s.ca.Issue(s.t, "proxy.corp.example")
			s.proxy(canarytest.ProxyRule{TLS: &cert})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			test.proxy(s)
			report := s.run()
			c := only(t, report, "PW303", Fail, test.kind, test.fix)
			if c.Breaks != Now || report.Outcome != Broken {
				t.Errorf("breaks %s, outcome %s", c.Breaks, report.Outcome)
			}
			only(t, report, "PW302", Pass, "is open")
			only(t, report, "PW401", Pass, "a layer arrived")
			only(t, report, "PW402", Fail, test.kind)
		})
	}
}

func TestProxyThatIsNotThere(t *testing.T) {
	s := newSite(t)
	s.proxyAt("http://nobody.corp.example:3128")
	report := s.run()
	only(t, report, "PW301", Fail, "does not resolve")
	only(t, report, "PW302", Untested, "PW301")
	s.names.Add("nobody.corp.example", netip.MustParseAddrPort("127.0.0.1:9"))
	s.proxyAt("http://nobody.corp.example:9")
	report = s.run()
	only(t, report, "PW301", Pass, "127.0.0.1")
	only(t, report, "PW302", Fail, "refused")
}

func TestC49_InterceptionNamesItsIssuer(t *testing.T) {
	s := newSite(t)
	other := canarytest.NewCA(t, "Corporate interception CA")
	behind := canarytest.NewRegistry(t, s.names, other, "intercepted.external.example")
	s.profile.Spec.Canary.External.Image = s.push(behind)
	only(t, s.run(), "PW304", Fail, "Corporate interception CA", "trustedCA")
	only(t, newSite(t).run(), "PW304", Pass, "site CA", "trusts by itself")
}

func TestC17_RedirectHopIsNamed(t *testing.T) {
	s := newSite(t)
	blobs := canarytest.NewRegistry(t, s.names, s.ca, "blobs.external.example")
	s.external.Rule(canarytest.Rule{BlobsAt: blobs.Host})
	report := s.run()
	if d := decision(t, report, "https://"+blobs.Host); d.Route != v1alpha1.RouteProxy || !strings.HasPrefix(d.What, "redirect of ") {
		t.Errorf("%+v", d)
	}
	only(t, report, "PW402", Fail, "NotFound", "redirect "+blobs.Host+": proxy")
}

func TestC50_TokenRealmIsInTheTable(t *testing.T) {
	s := newSite(t)
	realm := canarytest.NewRegistry(t, s.names, s.ca, "auth.external.example")
	s.external.Rule(canarytest.Rule{Realm: "https://" + realm.Host + "/token"})
	report := s.run()
	if d := decision(t, report, "https://"+realm.Host); d.Route != v1alpha1.RouteProxy || !strings.HasPrefix(d.What, "token realm of ") {
		t.Errorf("%+v", d)
	}
}

func TestC51_ClosedNetwork(t *testing.T) {
	s := newSite(t)
	s.profile.Spec.Canary.External = nil
	report := s.run()
	only(t, report, "PW402", Warn, "by the internal one alone")
	only(t, report, "PW303", Pass, "no external canary")
	s.proxy(canarytest.ProxyRule{User: "svc", Password: "wanted"})
	only(t, s.run(), "PW303", Fail, "ProxyAuthRequired")
	s.proxy(canarytest.ProxyRule{Status: 403})
	only(t, s.run(), "PW303", Warn, "does not go there")
}

func TestInternalRegistryByTheProxyIsWrong(t *testing.T) {
	s := newSite(t)
	s.profile.Spec.Registries.Internal, s.profile.Spec.NoProxy.Entries = []string{}, nil
	only(t, s.run(), "PW401", Fail, "by the wrong way, proxy", "spec.registries.internal")
}

func TestExternalRegistryInNoProxyIsWrong(t *testing.T) {
	s := newSite(t)
	s.profile.Spec.NoProxy.Entries = []v1alpha1.NoProxyRequest{{Value: "external.example", Reason: "a mistake"}}
	report := s.run()
	only(t, report, "PW402", Fail, "by the wrong way, direct", "external.example")
	only(t, report, "PW303", Untested, "did not lead through the proxy")
}

func TestDirectWayThatIsClosed(t *testing.T) {
	s := newSite(t)
	s.names.Add("closed.corp.example", netip.MustParseAddrPort("127.0.0.1:9"))
	s.profile.Spec.Registries.Internal = append(s.profile.Spec.Registries.Internal, "closed.corp.example:9")
	s.profile.Spec.Cluster.APIServer = "api.corp.example:6443"
	for _, c := range of(s.run(), "PW403") {
		switch c.Subject {
		case "closed.corp.example:9":
			expect(t, c, Fail, "refused", "only the proxy reaches it")
		case "api.corp.example:6443":
			expect(t, c, Warn, "does not resolve")
		default:
			expect(t, c, Pass, "is open")
		}
	}
}

func TestOverloadedRegistryIsUntested(t *testing.T) {
	s := newSite(t)
	s.external.Rule(canarytest.Rule{Status: 503})
	report := s.run()
	only(t, report, "PW402", Untested, "503")
	only(t, report, "PW303", Pass, "behind it")
}

// The password that a proxy takes and one that it refuses are in no report.
func TestSecretsStayOut(t *testing.T) {
	s := newSite(t)
	c := secrettest.Planted()
	s.input.Credentials = c
	s.profile.Spec.Proxy.CredentialsSecretName = "corp-proxy"
	s.proxy(canarytest.ProxyRule{User: c.Username, Password: c.Password.Reveal()})
	s.write("etc/systemd/system/containerd.service.d/http-proxy.conf",
		"[Service]\nEnvironment=\"HTTP_PROXY=http://u:"+c.Password.Reveal()+"@proxy:3128\" HTTPS_PROXY=http://u:p@proxy:3128\n")
	only(t, s.run(), "PW402", Pass)
	s.proxy(canarytest.ProxyRule{User: c.Username, Password: "another"})
	only(t, s.run(), "PW303", Fail, "ProxyAuthRequired", c.Username)
}
