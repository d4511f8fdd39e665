package canary

import (
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/pull"
	"github.com/proxyward/proxyward/canary/witness"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

func TestConcluded(t *testing.T) {
	remote := netip.MustParseAddrPort("10.0.0.9:3128")
	fresh := pull.Arrival{Size: 100, Bytes: 100, JudgedBy: pull.ByContentStore}
	byProxy := witness.Finding{Route: v1alpha1.RouteProxy, Remote: remote, Received: 120}
	external := expectation{route: v1alpha1.RouteProxy, accepted: []v1alpha1.Route{v1alpha1.RouteProxy}}
	internal := expectation{route: v1alpha1.RouteDirect, accepted: []v1alpha1.Route{v1alpha1.RouteDirect}}
	doubtful := internal
	doubtful.doubt = "the daemon's flags may name another folder"
	for _, tt := range []struct {
		name string
		seen observation
		want v1alpha1.Verdict
		by   string
		says string
	}{
		{"fresh and by the expected route", observation{expected: external, arrival: fresh, finding: byProxy}, v1alpha1.VerdictVerified, "content store", ""},
		{"C46 by another route", observation{expected: internal, arrival: fresh, finding: byProxy}, v1alpha1.VerdictWrongRoute, "content store", "expected was Direct"},
		{"another route where the host list is in doubt", observation{expected: doubtful, arrival: fresh, finding: byProxy}, v1alpha1.VerdictInconclusive, "content store", "in doubt"},
		{"route unknown", observation{expected: external, arrival: fresh, finding: witness.Finding{Route: v1alpha1.RouteUnknown, Why: "nothing seen"}}, v1alpha1.VerdictInconclusive, "content store", "nothing seen"},
		{"C45 layers held, even by the right route", observation{expected: external, arrival: pull.Arrival{Bytes: 10, JudgedBy: pull.ByContentStore, Held: []string{"sha256:aa"}}, finding: byProxy}, v1alpha1.VerdictInconclusive, "content store", "sha256:aa"},
		{"judged by sockets", observation{expected: external, arrival: pull.Arrival{Size: 100}, finding: byProxy}, v1alpha1.VerdictVerified, bySockets, ""},
		{"judged by nothing", observation{expected: external, finding: witness.Finding{Route: v1alpha1.RouteUnknown, Received: 90}}, v1alpha1.VerdictInconclusive, unjudged, "unknown whether"},
		{"C45 held by a container", observation{expected: external, pullErr: &pull.HeldError{Image: "x", By: "a container"}}, v1alpha1.VerdictInconclusive, "", "a container"},
		{"failed", observation{expected: external, pullErr: errors.New("pulling: no")}, v1alpha1.VerdictFailed, "", "pulling: no"},
		{"failed, and the walk knows why", observation{expected: external, pullErr: errors.New("pulling: no"), walk: &WalkReport{Failure: newFailure(FailProxyForbidden, "p:1", "403")}}, v1alpha1.VerdictFailed, "", "have the proxy's rules allow"},
		{"failed, and the walk succeeds", observation{expected: external, pullErr: errors.New("pulling: no"), walk: &WalkReport{}}, v1alpha1.VerdictFailed, "", "serves this process"},
		{"C61 failed, and the registry is overloaded", observation{expected: external, pullErr: errors.New("pulling: no"), walk: &WalkReport{Failure: newFailure(FailRateLimited, "r", "429")}}, v1alpha1.VerdictInconclusive, "", "429"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := concluded(v1alpha1.CanaryEvidence{Role: v1alpha1.CanaryExternal}, tt.seen)
			if got.Verdict != tt.want || got.BytesJudgedBy != tt.by {
				t.Errorf("concluded %s, judged by %q; want %s by %q", got.Verdict, got.BytesJudgedBy, tt.want, tt.by)
			}
			if tt.says != "" && !strings.Contains(got.Message, tt.says) || tt.says == "" && got.Message != "" {
				t.Errorf("message is %q, want it to say %q", got.Message, tt.says)
			}
		})
	}
}

func TestC62_ExpectedRouteIsTheMirrors(t *testing.T) {
	environment := proxyenv.Environment{Vars: []proxyenv.Var{
		{Name: "HTTPS_PROXY", Value: proxyenv.PlainSecret("http://proxy.corp.example:3128")},
		{Name: "NO_PROXY", Value: proxyenv.PlainSecret("mirror.corp.example")},
	}}
	hosts := func(fallsBack bool, mirrors ...string) runtimes.Runtime {
		return runtimes.Runtime{Hosts: []runtimes.RegistryHosts{{Registry: "registry.example", Hosts: mirrors, FallsBack: fallsBack}}}
	}
	for _, tt := range []struct {
		name    string
		role    v1alpha1.CanaryRole
		runtime runtimes.Runtime
		route   v1alpha1.Route
		accepts string
	}{
		{"external without a mirror", v1alpha1.CanaryExternal, runtimes.Runtime{}, v1alpha1.RouteProxy, "Proxy"},
		{"internal without a mirror", v1alpha1.CanaryInternal, runtimes.Runtime{}, v1alpha1.RouteDirect, "Direct"},
		{"a mirror that goes direct", v1alpha1.CanaryExternal, hosts(true, "https://mirror.corp.example"), v1alpha1.RouteMirror, "Mirror Proxy"},
		{"a mirror and nothing else", v1alpha1.CanaryExternal, hosts(false, "https://mirror.corp.example"), v1alpha1.RouteMirror, "Mirror"},
		{"a mirror that goes by the proxy", v1alpha1.CanaryExternal, hosts(false, "https://mirror.elsewhere.example"), v1alpha1.RouteProxy, "Proxy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := expect(tt.role, "registry.example/canary:1", tt.runtime, environment)
			if err != nil {
				t.Fatal(err)
			}
			var accepts []string
			for _, route := range got.accepted {
				accepts = append(accepts, string(route))
			}
			if got.route != tt.route || strings.Join(accepts, " ") != tt.accepts {
				t.Errorf("expected %s, accepting %v; want %s, accepting %s", got.route, accepts, tt.route, tt.accepts)
			}
		})
	}
}

func TestC54_RedactorKnowsEveryForm(t *testing.T) {
	const password, login = `p@ss:w/rd%40#`, "registry-s3cret"
	environment := proxyenv.Environment{Vars: []proxyenv.Var{
		{Name: "HTTPS_PROXY", Value: proxyenv.NewSecret("http://svc:p%40ss%3Aw%2Frd%2540%23@proxy.example:3128", "")},
	}}
	redact := redactor(environment, &RegistryAuth{Username: "puller", Password: proxyenv.NewSecret(login, "")})
	for _, secret := range []string{
		password, "p%40ss%3Aw%2Frd%2540%23", base64.StdEncoding.EncodeToString([]byte("svc:" + password)),
		login, base64.StdEncoding.EncodeToString([]byte("puller:" + login)),
	} {
		if got := redact("before " + secret + " after"); strings.Contains(got, secret) || !strings.Contains(got, proxyenv.Mask) {
			t.Errorf("redacted to %q", got)
		}
	}
}
