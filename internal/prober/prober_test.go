package prober

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/runtimes"
)

func TestAsked(t *testing.T) {
	front := func(route v1alpha1.Route) []canary.Hop {
		return []canary.Hop{{Purpose: canary.PurposeRegistry, Host: "r.example", Route: route, Why: "because"}}
	}
	tests := []struct {
		name   string
		role   v1alpha1.CanaryRole
		report canary.WalkReport
		kind   apply.FailureKind // "" for none
	}{
		{"internal, direct", v1alpha1.CanaryInternal, canary.WalkReport{Hops: front(v1alpha1.RouteDirect)}, ""},
		{"external, by proxy", v1alpha1.CanaryExternal, canary.WalkReport{Hops: front(v1alpha1.RouteProxy)}, ""},
		{"C62 external, by a mirror", v1alpha1.CanaryExternal, canary.WalkReport{Hops: front(v1alpha1.RouteMirror)}, ""},
		{"C46 internal, by proxy", v1alpha1.CanaryInternal, canary.WalkReport{Hops: front(v1alpha1.RouteProxy)}, "WrongRoute"},
		{"C47 external, direct", v1alpha1.CanaryExternal, canary.WalkReport{Hops: front(v1alpha1.RouteDirect)}, "WrongRoute"},
		{"C48 407", v1alpha1.CanaryExternal, canary.WalkReport{Failure: &canary.Failure{Kind: canary.FailProxyAuthRequired, Hop: "p:1"}}, apply.KindProxyAuth},
		{"C48 403", v1alpha1.CanaryExternal, canary.WalkReport{Failure: &canary.Failure{Kind: canary.FailProxyForbidden, Hop: "p:1"}}, "ProxyForbidden"},
		{"C61 429", v1alpha1.CanaryExternal, canary.WalkReport{Failure: &canary.Failure{Kind: canary.FailRateLimited, Hop: "r:1"}}, apply.KindTransient},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := asked(Canary{Role: tt.role, Image: "r.example/a:1"}, tt.report)
			switch {
			case f == nil && tt.kind == "":
			case f == nil || f.Kind != tt.kind:
				t.Errorf("failure %+v, want %q", f, tt.kind)
			case f.Hop == "" || !strings.Contains(f.Subject, "r.example/a:1"):
				t.Errorf("failure without an identity: %+v", f)
			}
		})
	}
}

func TestProven(t *testing.T) {
	tests := []struct {
		name     string
		evidence v1alpha1.CanaryEvidence
		kind     apply.FailureKind
		hop      string
	}{
		{"verified", v1alpha1.CanaryEvidence{Verdict: v1alpha1.VerdictVerified}, "", ""},
		{"wrong route", v1alpha1.CanaryEvidence{Verdict: v1alpha1.VerdictWrongRoute, Remote: "10.0.0.1:3128"}, "WrongRoute", "10.0.0.1:3128"},
		{"failed at a hop", v1alpha1.CanaryEvidence{Verdict: v1alpha1.VerdictFailed, Failure: "RegistryDNS", Hop: "r.example"}, "RegistryDNS", "r.example"},
		{"the old password is dead", v1alpha1.CanaryEvidence{Verdict: v1alpha1.VerdictFailed, Failure: "ProxyAuthRequired", Hop: "p:1"}, apply.KindProxyAuth, "p:1"},
		{"failed, nobody knows where", v1alpha1.CanaryEvidence{Verdict: v1alpha1.VerdictFailed}, "Failed", ""},
		{"C61 says nothing of the proxy", v1alpha1.CanaryEvidence{Verdict: v1alpha1.VerdictInconclusive, Failure: "RateLimited"}, apply.KindTransient, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := proven("containerd.service", tt.evidence)
			if f == nil {
				if tt.kind != "" {
					t.Errorf("no failure, want %q", tt.kind)
				}
				return
			}
			if f.Kind != tt.kind || f.Hop != tt.hop {
				t.Errorf("failure %+v, want %q at %q", f, tt.kind, tt.hop)
			}
		})
	}
}

func TestPulledFrom(t *testing.T) {
	rt := runtimes.Runtime{Hosts: []runtimes.RegistryHosts{
		{Registry: "registry.k8s.io", Hosts: []string{"https://mirror.example"}, FallsBack: true},
	}}
	tests := map[string]string{
		"registry.k8s.io/pause:3.1": "https://mirror.example https://registry.k8s.io",
		"quay.example/a:1":          "https://quay.example",
		"not an image":              "",
	}
	for image, want := range tests {
		if got := strings.Join(PulledFrom(image, rt), " "); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

func TestReadPullSecret_KeysAsTheyAreWritten(t *testing.T) {
	tests := map[string]struct{ key, image string }{
		"host":               {"registry.corp.example", "registry.corp.example/canary:1"},
		"URL":                {"https://registry.corp.example:5000", "registry.corp.example:5000/canary:1"},
		"URL with a path":    {"http://registry.corp.example/v2/", "registry.corp.example/canary:1"},
		"Docker Hub's login": {"https://index.docker.io/v1/", "docker.io/library/busybox:1"},
		"Docker Hub by name": {"docker.io", "busybox:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pull.json")
			if err := os.WriteFile(path, []byte(`{"auths":{"`+test.key+`":{"auth":"cHVsbGVyOnB3"}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			logins, err := ReadPullSecret(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Canaries(v1alpha1.Canary{Internal: &v1alpha1.CanaryImage{Image: test.image, PullSecretName: "pull"}}, logins)
			if err != nil {
				t.Fatal(err)
			}
			if auth := got[0].Auth; auth.Username != "puller" || auth.Password.Reveal() != "pw" {
				t.Errorf("login of %q", auth.Username)
			}
		})
	}
}

func TestCanariesGetTheLoginOfTheirOwnRegistry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pull.json")
	const secret = "planted-pull-secret"
	text := `{"auths":{"registry.corp.example:5000":{"username":"puller","password":"` + secret + `"}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	logins, err := ReadPullSecret(path)
	if err != nil {
		t.Fatal(err)
	}
	both := v1alpha1.Canary{
		Internal: &v1alpha1.CanaryImage{Image: "registry.corp.example:5000/canary:1", PullSecretName: "pull"},
		External: &v1alpha1.CanaryImage{Image: "registry.k8s.io/pause:3.1"},
	}
	got, err := Canaries(both, logins)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d canaries: %v", len(got), err)
	}
	if got[0].Auth == nil || got[0].Auth.Password.Reveal() != secret || got[1].Auth != nil {
		t.Errorf("logins: %v, %v", got[0].Auth, got[1].Auth)
	}

	both.External.PullSecretName = "other"
	_, err = Canaries(both, logins)
	field, ok := errors.AsType[v1alpha1.FieldError](err)
	if !ok || field.Path != "spec.canary.external.pullSecretName" {
		t.Errorf("a login that was not given: %v", err)
	}

	if err := os.WriteFile(path, []byte(text[:len(text)-3]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPullSecret(path); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a broken file: %v", err)
	}
}
