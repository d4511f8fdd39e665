package proxyenv

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"
)

// generated returns environments and URLs, the same ones each time: lists drawn from live, dead and
// odd entries, and URLs that hit, nearly hit and miss them.
func generated(environments, urls int) (envs []Environment, targets []string) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	entries := []string{
		"corp.example", ".corp.example", "*.corp.example", "CORP.example", "reg.corp.example:5000", ".corp.example:443", "example",
		"10.0.0.0/8", "10.1.2.3", "10.1.2.3:5000", "10.1.2.3/33", "10.*", "10.", "10.1", "fd00::/8", "fd00::5", "[fd00::5]", "[fd00::5]:5000", "FD00:0::5",
		"http://corp.example", "corp.example/x", "corp.example.", "corp.example:", "corp.example:http", ":443", ".", "..", "[", "]", "[]", "a b", "localhost",
		"::1", "127.0.0.0/8", "0.0.0.0/0", "::/0", "bücher.example", "xn--bcher-kva.example", "", " ", "169.254.169.254", "*corp.example", "corp.*", "reg", ".svc",
	}
	proxies := []string{"http://127.0.0.1:PORT", "127.0.0.1:PORT", "HTTP://127.0.0.1:PORT/", "http://svc:p%40ss@127.0.0.1:PORT", "", "http://127.0.0.1:PORT\n", "http://a b:1", "http://%zz"}
	for i := range environments {
		var list []string
		for range r.IntN(6) {
			list = append(list, pick(entries))
		}
		if i%11 == 10 {
			list = append(list, "*")
		}
		upper, noUpper := "HTTP_PROXY,HTTPS_PROXY,NO_PROXY", r.IntN(3) == 0
		env := Environment{}
		for j, name := range strings.Split(upper, ",") {
			value := strings.Join(list, pick([]string{",", ", ", ","}))
			if j < 2 {
				value = proxies[0]
				if r.IntN(3) == 0 {
					value = pick(proxies)
				}
			}
			if noUpper {
				name = strings.ToLower(name)
			}
			env.Vars = append(env.Vars, Var{Name: name, Value: PlainSecret(value)})
		}
		envs = append(envs, env)
	}
	hosts := []string{
		"corp.example", "reg.corp.example", "a.b.corp.example", "notcorp.example", "CORP.example", "other.test", "reg", "kubernetes.default.svc",
		"10.1.2.3", "10.200.0.1", "192.0.2.1", "169.254.169.254", "[fd00::5]", "[fd00:0:0::5]", "[2001:db8::1]", "[::1]", "[::ffff:10.1.2.3]", "localhost", "127.0.0.9", "LOCALHOST", "a.localhost", "xn--bcher-kva.example",
	}
	for range urls {
		targets = append(targets, pick([]string{"http", "https"})+"://"+pick(hosts)+pick([]string{"", ":443", ":80", ":5000", ":6443"})+"/v2/")
	}
	return envs, targets
}

func TestMatcherIsGosMatcher(t *testing.T) {
	envs, targets := generated(300, 60)
	for _, env := range envs {
		value := func(name string) string {
			for _, n := range []string{name, strings.ToLower(name)} {
				for _, v := range env.Vars {
					if v.Name == n && v.Value.Reveal() != "" {
						return v.Value.Reveal()
					}
				}
			}
			return ""
		}
		cfg := httpproxy.Config{HTTPProxy: value("HTTP_PROXY"), HTTPSProxy: value("HTTPS_PROXY"), NoProxy: value("NO_PROXY")}
		proxyFor := cfg.ProxyFunc()
		m := NewMatcher(env)
		for _, target := range targets {
			u, err := url.Parse(target)
			if err != nil {
				t.Fatal(err)
			}
			want, err := proxyFor(u)
			if err != nil {
				t.Fatal(err)
			}
			got := m.Decide(target)
			if got.Err != nil || got.Direct != (want == nil) || want != nil && got.Proxy.Reveal() != want.String() {
				t.Errorf("%s under %+v: got %+v, want %v", target, cfg, got, want)
			}
			checkReason(t, cfg, target, u, got)
		}
	}
}

// checkReason holds the reason of a decision to what the matcher says without what it blames.
func checkReason(t *testing.T, cfg httpproxy.Config, target string, u *url.URL, d Decision) {
	t.Helper()
	if d.Why == "" {
		t.Errorf("%s: no reason", target)
	}
	if d.Entry == nil {
		if d.Direct && strings.Contains(d.Why, "matches") {
			t.Errorf("%s under NO_PROXY=%s: an entry matched and is not named", target, cfg.NoProxy)
		}
		return
	}
	alone := httpproxy.Config{HTTPProxy: "http://p:1", HTTPSProxy: "http://p:1", NoProxy: d.Entry.Value}
	if p, _ := alone.ProxyFunc()(u); p != nil {
		t.Errorf("%s: the entry %s is blamed and does not match alone", target, d.Entry.Value)
	}
	without := alone
	without.NoProxy = ""
	if p, _ := without.ProxyFunc()(u); p == nil {
		t.Errorf("%s: the entry %s is blamed and the host is direct without it", target, d.Entry.Value)
	}
}

func TestDecideNamesWhatDecided(t *testing.T) {
	rev, _ := resolve(t, Input{Profile: profile()})
	env := environmentOf(t, rev)
	for target, want := range map[string]string{
		"https://registry.corp.example:5000/v2/": "NO_PROXY entry corp.example matches (profile: internal names)",
		"https://10.96.0.1/":                     "NO_PROXY entry 10.96.0.0/16 matches (cluster: service network)",
		"https://localhost/":                     "Go never asks a proxy for localhost and loopback addresses",
		"https://registry.k8s.io/v2/":            "no NO_PROXY entry matches, so HTTPS_PROXY is used",
	} {
		if got := env.decide(target); got.Why != want {
			t.Errorf("%s: got %q, want %q", target, got.Why, want)
		}
	}
	none := NewMatcher(Environment{Vars: []Var{{Name: "HTTPS_PROXY", Value: PlainSecret("http://h:1\n")}}})
	if d := none.Decide("https://x/"); !d.Direct || !strings.Contains(d.Why, "not a URL") {
		t.Errorf("a proxy that does not parse: %+v", d)
	}
	spaced := NewMatcher(Environment{Vars: []Var{{Name: "HTTPS_PROXY", Value: PlainSecret("http://u:p w@h")}}})
	if d := spaced.Decide("https://x/"); d.Direct || !strings.Contains(d.Why, `Go takes "http" for the proxy's host`) {
		t.Errorf("a proxy with a space: %+v", d)
	}
	if d := none.Decide("http://x/"); !d.Direct || d.Why != "HTTP_PROXY is not set" {
		t.Errorf("no proxy: %+v", d)
	}
	for _, bad := range []string{"", "x", "ftp://x", "https://", "http://u:plantedpw@x y/", "/v2/"} {
		if d := none.Decide(bad); d.Err == nil || strings.Contains(d.Err.Error(), "plantedpw") {
			t.Errorf("%q: %+v", bad, d)
		}
	}
	if d := NewMatcher(Environment{Vars: []Var{{Name: "HTTPS_PROXY", Value: PlainSecret("http://u:plantedpw@h:1")}}}).Decide("https://x/"); strings.Contains(fmt.Sprintf("%+v", d), "plantedpw") || d.Proxy.Reveal() != "http://u:plantedpw@h:1" {
		t.Errorf("the proxy's password prints, or is lost: %+v", d)
	}
}
