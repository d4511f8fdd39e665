package proxyenv

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// testEnv is an environment with a shorthand for its matcher.
type testEnv struct{ Environment }

func (e testEnv) decide(u string) Decision { return NewMatcher(e.Environment).Decide(u) }

func (e testEnv) value(name string) (string, bool) {
	i := slices.IndexFunc(e.Vars, func(v Var) bool { return v.Name == name })
	if i < 0 {
		return "", false
	}
	return e.Vars[i].Value.Reveal(), true
}

func environmentOf(t *testing.T, rev *v1alpha1.ProxyRevisionSpec, mirrors ...string) testEnv {
	t.Helper()
	env, err := ForNode(NodeInput{Revision: rev, Mirrors: mirrors})
	if err != nil {
		t.Fatal(err)
	}
	return testEnv{env}
}

// C1, C2, C4: whatever the bytes, the proxy's URL gives them back.
func TestC01_C02_C04_CredentialsAreEncodedOnce(t *testing.T) {
	for _, c := range []struct{ user, password, want string }{
		{"svc", "p@ss:w/rd%40#", "http://svc:p%40ss%3Aw%2Frd%2540%23@proxy.corp.example:3128"},
		{"svc", `"a\b$c` + "é" + `d"`, "http://svc:%22a%5Cb%24c%C3%A9d%22@proxy.corp.example:3128"},
		{`CORP\svc`, "x", `http://CORP%5Csvc:x@proxy.corp.example:3128`},
		{"svc", "", "http://svc:@proxy.corp.example:3128"},
		{"a-b.c_d~e", "%", "http://a-b.c_d~e:%25@proxy.corp.example:3128"},
	} {
		rev, _ := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.CredentialsSecretName = "corp-proxy" })})
		env, err := ForNode(NodeInput{Revision: rev, Credentials: NewCredentials(c.user, c.password)})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			got, _ := testEnv{env}.value(name)
			if got != c.want {
				t.Errorf("%s of %q %q: got %s, want %s", name, c.user, c.password, got, c.want)
			}
			u, err := url.Parse(got)
			if err != nil {
				t.Fatal(err)
			}
			if pw, _ := u.User.Password(); u.User.Username() != c.user || pw != c.password {
				t.Errorf("%q %q came back as %q %q", c.user, c.password, u.User.Username(), pw)
			}
		}
		if c.password != "" && len(c.password) > 1 {
			if text := fmt.Sprintf("%v %+v %#v", env, env, env); strings.Contains(text, c.password) || strings.Contains(text, encodeUserinfo(c.password)) {
				t.Errorf("the password prints: %s", text)
			}
		}
	}
}

func FuzzEncodeUserinfo(f *testing.F) {
	for _, s := range []string{"p@ss:w/rd%40#", `"\$`, "é", "\x00\xff", "", "%"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, user, password string) {
		s, err := withCredentials("http://proxy:3128", NewCredentials("u"+user, password))
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(s.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if pw, _ := u.User.Password(); u.User.Username() != "u"+user || pw != password || u.Host != "proxy:3128" {
			t.Errorf("%q %q came back as %q %q at %q", "u"+user, password, u.User.Username(), pw, u.Host)
		}
		if s.Masked() != "http://***@proxy:3128" {
			t.Errorf("masked: %s", s.Masked())
		}
	})
}

func TestForNodeSixVariables(t *testing.T) {
	rev, _ := resolve(t, Input{Profile: profile()})
	env := environmentOf(t, rev)
	var names []string
	for _, v := range env.Vars {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, OwnedVariables()) || len(env.Unset) != 0 {
		t.Errorf("set %v, unset %v", names, env.Unset)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		upper, _ := env.value(name)
		lower, _ := env.value(strings.ToLower(name))
		if upper != lower || upper == "" {
			t.Errorf("%s: %q and %q", name, upper, lower)
		}
	}
	if got, _ := env.value("NO_PROXY"); got != strings.Join(values(rev.NoProxy), ",") {
		t.Errorf("NO_PROXY: %s", got)
	}
}

func TestC07_UnsetInBothCases(t *testing.T) {
	rev, _ := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.HTTPS = "" })})
	if env := environmentOf(t, rev); !slices.Equal(env.Unset, []string{"HTTPS_PROXY", "https_proxy"}) {
		t.Errorf("unset %v", env.Unset)
	}
	rev, _ = resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.HTTP = "" })})
	if env := environmentOf(t, rev); !slices.Equal(env.Unset, []string{"HTTP_PROXY", "http_proxy"}) {
		t.Errorf("unset %v", env.Unset)
	}
}

func TestForNodeTrustedCA(t *testing.T) {
	sha := strings.Repeat("ab", 32)
	rev, _ := resolve(t, Input{CASHA256: sha, Profile: profile(func(s *v1alpha1.ProxyProfileSpec) {
		s.Proxy.TrustedCA = &v1alpha1.ConfigMapKey{ConfigMapName: "ca"}
	})})
	got, _ := environmentOf(t, rev).value("SSL_CERT_DIR")
	if want := "/etc/ssl/certs:/etc/pki/tls/certs:/etc/proxyward/ca/" + sha; got != want {
		t.Errorf("SSL_CERT_DIR: got %s, want %s", got, want)
	}
	rev, _ = resolve(t, Input{Profile: profile()})
	env := environmentOf(t, rev)
	if _, ok := env.value("SSL_CERT_DIR"); ok || slices.Contains(env.Unset, "SSL_CERT_DIR") {
		t.Error("SSL_CERT_DIR is touched without a trusted CA")
	}
}

func TestForNodeMirrors(t *testing.T) {
	rev, _ := resolve(t, Input{Profile: profile()})
	env := environmentOf(t, rev, "192.168.7.7:5000", "[fd00:7::7]:5000", "100.64.0.9", "10.66.0.9:5000",
		"mirror.example", "203.0.113.9", "localhost:5000", "127.0.0.1:5000", "192.168.7.7:5000")
	var own []string
	for _, e := range env.Entries {
		if e.Source == v1alpha1.SourceNode {
			own = append(own, e.Value)
		}
	}
	if want := []string{"100.64.0.9", "192.168.7.7:5000", "[fd00:7::7]:5000"}; !slices.Equal(own, want) {
		t.Errorf("node entries %v, want %v", own, want)
	}
	if env.NodeDigest == "" || !slices.IsSorted(values(env.Entries)) {
		t.Errorf("digest %q, entries %v", env.NodeDigest, values(env.Entries))
	}
	if len(rev.NoProxy) == len(env.Entries) {
		t.Error("the revision's own list was changed")
	}
	if env := environmentOf(t, rev, "10.66.0.9:5000", "mirror.example"); env.NodeDigest != "" {
		t.Error("a digest without entries")
	}
	rev.Excluded = []string{"192.168.7.7:5000"}
	if env := environmentOf(t, rev, "192.168.7.7:5000"); env.NodeDigest != "" {
		t.Error("an excluded mirror is added")
	}
}

func TestForNodeCredentialsMustFit(t *testing.T) {
	with, _ := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.CredentialsSecretName = "corp-proxy" })})
	without, _ := resolve(t, Input{Profile: profile()})
	for name, in := range map[string]NodeInput{
		"missing": {Revision: with}, "not asked for": {Revision: without, Credentials: NewCredentials("u", "planted-pw")},
		"no user": {Revision: with, Credentials: NewCredentials("", "planted-pw")},
	} {
		if _, err := ForNode(in); err == nil || strings.Contains(err.Error(), "planted-pw") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestC05_ForNodeRefusesWhatTheKernelRefuses(t *testing.T) {
	rev, _ := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.CredentialsSecretName = "corp-proxy" })})
	frame := len("HTTPS_PROXY=http://u:@proxy.corp.example:3128")
	if _, err := ForNode(NodeInput{Revision: rev, Credentials: NewCredentials("u", strings.Repeat("x", MaxEnvString-frame))}); err != nil {
		t.Errorf("the longest possible string is refused: %v", err)
	}
	_, err := ForNode(NodeInput{Revision: rev, Credentials: NewCredentials("u", strings.Repeat("x", MaxEnvString-frame+1))})
	if err == nil || !strings.Contains(err.Error(), "131072 bytes") {
		t.Errorf("one byte too many: %v", err)
	}
}

func BenchmarkResolveForNode2000(b *testing.B) {
	p := profile(func(s *v1alpha1.ProxyProfileSpec) {
		s.NoProxy.Entries = nil
		for i := range 2000 {
			s.NoProxy.Entries = append(s.NoProxy.Entries, v1alpha1.NoProxyRequest{Value: fmt.Sprintf("host-%04d.corp.example", i), Reason: "bench"})
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		rev, _, err := Resolve(Input{Profile: p})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ForNode(NodeInput{Revision: rev, Mirrors: []string{"192.168.1.1:5000"}}); err != nil {
			b.Fatal(err)
		}
	}
}
