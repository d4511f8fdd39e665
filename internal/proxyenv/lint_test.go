package proxyenv

import (
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

func lintEntry(value string) []LintFinding {
	l := &linter{}
	l.entry("e", value)
	return l.findings
}

// C18, C19, C74: what is dead in Go, in which other clients, and what to write instead.
func TestC18_C19_C74_DeadEntries(t *testing.T) {
	for value, want := range map[string]struct {
		problem, fix string
		aliveIn      Client
	}{
		"*":                  {problem: "sends everything past the proxy"},
		"10.*":               {problem: "no wildcard", fix: "write 10.0.0.0/8"},
		"10.1.*":             {problem: "no wildcard", fix: "write 10.1.0.0/16"},
		"10.1.*.*":           {problem: "no wildcard", fix: "write 10.1.0.0/16"},
		"10.":                {problem: "dot at the end", fix: "write 10.0.0.0/8"},
		"10.1":               {problem: "part of an address", fix: "write 10.1.0.0/16"},
		"http://x":           {problem: "it is a URL", fix: "write x"},
		"http://x.com:80/y":  {problem: "it is a URL", fix: "write x.com:80"},
		"x/path":             {problem: "it has a path", fix: "write x"},
		"[fd00::5]":          {problem: "brackets without a port", fix: "write fd00::5", aliveIn: ClientPython},
		"10.0.0.0/8:80":      {problem: "CIDR cannot have a port", fix: "write 10.0.0.0/8"},
		"x.com.":             {problem: "dot at the end", fix: "write x.com", aliveIn: ClientCurl},
		"x.com:http":         {problem: "port is not a number", fix: "write x.com"},
		"*corp.example":      {problem: "no wildcard", fix: "leading dot"},
		"127.0.0.1/":         {problem: "prefix length after the slash is missing", fix: "write 127.0.0.1"},
		"10.0.0.0/33":        {problem: "prefix length is not valid"},
		"fe80::1%eth0":       {problem: "zone", fix: "write fe80::1"},
		"<cidr>":             {problem: "placeholder", fix: "write the value that was meant"},
		"${NO_PROXY}":        {problem: "placeholder"},
		`".corp`:             {problem: "placeholder or like quoting"},
		".corp, name":        {problem: "several entries"},
		"a b":                {problem: "white space inside"},
		"ends-with-.-x..com": {problem: "not a host name"},
		"":                   {problem: "empty"},
	} {
		fs := lintEntry(value)
		if len(fs) != 1 || fs[0].Severity != SeverityError || !strings.Contains(fs[0].Problem, want.problem) || !strings.Contains(fs[0].Fix, want.fix) {
			t.Errorf("%q: got %v, want %+v", value, fs, want)
			continue
		}
		if want.aliveIn != "" && slices.Contains(fs[0].Clients, want.aliveIn) {
			t.Errorf("%q is called dead in %s: %v", value, want.aliveIn, fs[0].Clients)
		}
	}
}

// Whatever Lint calls dead, the real matcher matches with nothing that could be meant, and the
// other way round.
func TestC19_DeadMeansDead(t *testing.T) {
	envs, targets := generated(400, 80)
	for _, env := range envs {
		for _, v := range env.Vars {
			if !strings.EqualFold(v.Name, "no_proxy") {
				continue
			}
			for _, raw := range commas(v.Value.Reveal()) {
				e := parseEntry(raw)
				if e.kind == kindEverything {
					continue
				}
				m := NewMatcher(Environment{Vars: []Var{{Name: "HTTPS_PROXY", Value: PlainSecret(probeProxy)}, {Name: "HTTP_PROXY", Value: PlainSecret(probeProxy)}, {Name: "NO_PROXY", Value: PlainSecret(raw)}}})
				for _, target := range targets {
					d := m.Decide(target)
					if e.kind == kindDead && d.Entry != nil {
						t.Errorf("%q is called dead and matches %s", raw, target)
					}
					if e.kind == kindDead {
						continue
					}
					normal := coverage([]v1alpha1.NoProxyEntry{{Value: e.value()}}).Decide(target)
					if normal.Direct != d.Direct {
						t.Errorf("%q and its normal form %q differ for %s", raw, e.value(), target)
					}
				}
			}
		}
	}
}

func TestC15_LintSaysThatNetworksNeverMatchNames(t *testing.T) {
	p := profile(func(s *v1alpha1.ProxyProfileSpec) {
		s.NoProxy.Entries = []v1alpha1.NoProxyRequest{{Value: "10.20.0.0/16"}}
		s.Cluster.NodeCIDRs = nil
	})
	fs := Lint(p)
	if !slices.ContainsFunc(fs, func(f LintFinding) bool {
		return f.Path == "spec.registries.internal[0]" && strings.Contains(f.Problem, "(10.20.0.0/16) never match a name")
	}) {
		t.Errorf("got %v", fs)
	}
}

func TestC03_C71_LintProxyURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"proxy:3128":                 "no scheme; Go and curl put http:// in front",
		"http://proxy:3128/":         "Go reads it as http://proxy:3128",
		"HTTP://proxy:3128":          "Go reads it as http://proxy:3128",
		"http://proxy":               "no port: Go takes the scheme's own (80, 443, 1080), curl takes 1080",
		"http://u:planted#w@host":    "it holds credentials",
		"http://svc:planted@host:1":  "it holds credentials",
		"ftp://proxy:21":             `has the scheme "ftp"`,
		"http://pro xy:1":            "not a proxy's URL",
		"http://proxy:3128/path?a=b": "not a proxy's URL",
	} {
		l := &linter{}
		l.proxyURL("spec.proxy.http", raw)
		if len(l.findings) != 1 || !strings.Contains(l.findings[0].String(), want) || strings.Contains(l.findings[0].String(), "planted") {
			t.Errorf("%s: got %v, want %s", raw, l.findings, want)
		}
	}
	l := &linter{}
	l.proxyURL("p", "http://proxy:3128")
	if len(l.findings) != 0 {
		t.Errorf("a good proxy: %v", l.findings)
	}
}

func TestC07_LintSaysWhatGoesDirect(t *testing.T) {
	fs := Lint(profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.HTTPS = "" }))
	if !slices.ContainsFunc(fs, func(f LintFinding) bool {
		return f.Path == "spec.proxy.https" && strings.Contains(f.Problem, "go direct")
	}) {
		t.Errorf("got %v", fs)
	}
}

func TestLintCanaries(t *testing.T) {
	fs := Lint(profile(func(s *v1alpha1.ProxyProfileSpec) {
		s.Canary.Internal = &v1alpha1.CanaryImage{Image: "other.example:5000/canary:1"}
		s.Canary.External = &v1alpha1.CanaryImage{Image: "hub.corp.example/pause:3.1"}
	}))
	for _, path := range []string{"spec.canary.internal.image", "spec.canary.external.image"} {
		if !slices.ContainsFunc(fs, func(f LintFinding) bool { return f.Path == path && f.Severity == SeverityWarning }) {
			t.Errorf("%s: got %v", path, fs)
		}
	}
}

func TestLintOfAGoodProfileIsQuiet(t *testing.T) {
	for _, f := range Lint(profile()) {
		if f.Severity != SeverityInfo {
			t.Errorf("%s: %s", f.Severity, f)
		}
	}
}

// C76: different values in the two cases.
func TestC76_LintEnvironmentCases(t *testing.T) {
	fs := LintEnvironment(Environment{Vars: []Var{
		{Name: "HTTPS_PROXY", Value: PlainSecret("http://a:1")}, {Name: "https_proxy", Value: PlainSecret("http://b:1")},
		{Name: "NO_PROXY", Value: PlainSecret(".corp,${MORE}")}, {Name: "PATH", Value: PlainSecret("/bin")},
	}})
	var text []string
	for _, f := range fs {
		if f.Severity != SeverityInfo {
			text = append(text, f.String())
		}
	}
	if len(text) != 2 || !strings.Contains(text[0], "differ") || !strings.HasPrefix(text[1], "NO_PROXY[1]: \"${MORE}\"") {
		t.Errorf("got %q", text)
	}
}
