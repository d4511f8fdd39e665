package profilefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

const good = `apiVersion: proxyward.dev/v1alpha1
kind: ProxyProfile
metadata:
  name: corp
  creationTimestamp: 2026-01-01T00:00:00Z
spec:
  nodeSelector: {matchLabels: {pool: workers}}
  proxy:
    http: http://proxy.corp.example:3128
    https: http://proxy.corp.example:3128
    credentialsSecretName: corp-proxy
    trustedCA: {configMapName: corp-ca}
  noProxy:
    entries:
    - {value: 10.20.0.0/16, reason: data centre LAN}
    - {value: corp.example}
  cluster:
    serviceCIDRs: []
    apiServer: api.corp.example:6443
  registries:
    internal: [registry.corp.example:5000]
  targets: [Containerd]
  rollout:
    maxUnavailable: 2
    windows:
    - {days: [Sat], start: 22:00, duration: 4h}
`

func TestParse(t *testing.T) {
	p, err := Parse("profile.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	s := p.Spec
	switch {
	case p.Name != "corp", s.Proxy.HTTPS != "http://proxy.corp.example:3128", s.NoProxy.Entries[0].Reason != "data centre LAN":
		t.Errorf("not what was written: %+v", p)
	case s.Cluster.ServiceCIDRs == nil || s.Cluster.PodCIDRs != nil:
		t.Errorf("[] and absent are not told apart: %#v", s.Cluster)
	case s.Rollout.MaxUnavailable.IntValue() != 2, s.Rollout.Windows[0].Duration.Duration != 4*time.Hour:
		t.Errorf("rollout: %+v", s.Rollout)
	case s.Drift != v1alpha1.DriftRepair, s.Proxy.TrustedCA.Key != "ca.crt", s.Rollout.Windows[0].TimeZone != "UTC", *s.Rollout.MaxFailures != 1:
		t.Errorf("defaults are missing: %+v", s)
	}
}

func TestLoadFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.yaml")
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
	if _, err := Load(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	// JSON is YAML.
	if _, err := Parse("p.json", []byte(`{"apiVersion":"proxyward.dev/v1alpha1","kind":"ProxyProfile","metadata":{"name":"a"},"spec":{"nodeSelector":{},"proxy":{"https":"http://p:1"}}}`)); err != nil {
		t.Error(err)
	}
}

// TestErrorsNameLineFieldAndFix changes one line of the good profile each time.
func TestErrorsNameLineFieldAndFix(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"  proxy:", "  proxies:", `p.yaml:8: spec.proxies: there is no such field; write proxy`},
		{"    http: http", "    htps: http", `p.yaml:9: spec.proxy.htps: there is no such field; write http`},
		{"  targets:", "  completelyElse:", `p.yaml:22: spec.completelyElse: there is no such field; the fields here are canary, cluster, controlPlane`},
		{"[Containerd]", "[containerd]", `p.yaml:22: spec.targets[0]: found "containerd": there is no such value; write Containerd, CRIO, Docker, Kubelet, K3s, RKE2 or System`},
		{"[Containerd]", "Containerd", `p.yaml:22: spec.targets: found "Containerd": it must be a list; write - in front of each item, or [a, b]`},
		{"[Containerd]", "[1]", `p.yaml:22: spec.targets[0]: found "1": YAML reads this as a number, and text is meant; put it in quotes`},
		{"[Containerd]", "[~]", `p.yaml:22: spec.targets[0]: the item is empty; write its value or remove it`},
		{"[Containerd]", "[Docker, Docker]", `p.yaml:22: spec.targets[1]: found "Docker": it says the same as item 0 of the list`},
		{"corp.example}", "'*'}", `p.yaml:16: spec.noProxy.entries[1].value: found "*": a wildcard sends everything past the proxy`},
		{"value: corp.example", "value: 10.20", `p.yaml:16: spec.noProxy.entries[1].value: found "10.20": YAML reads this as a number`},
		{"{value: corp.example}", "{reason: x}", `p.yaml:16: spec.noProxy.entries[1].value: it is required`},
		{"{value: corp.example}", "corp.example", `p.yaml:16: spec.noProxy.entries[1]: found "corp.example": it must have fields of its own; write its fields on lines of their own, indented: reason, value`},
		{"data centre LAN", `"a\rb"`, `p.yaml:15: spec.noProxy.entries[0].reason: found "a\rb": it holds a control character`},
		{"maxUnavailable: 2", "maxUnavailable: 150%", `p.yaml:24: spec.rollout.maxUnavailable: found "150%": it lets no node be changed, or more than there are`},
		{"maxUnavailable: 2", "maxUnavailable: true", `p.yaml:24: spec.rollout.maxUnavailable: found "true": it must be a whole number or a percentage`},
		{"maxUnavailable: 2", "paused: yes", `p.yaml:24: spec.rollout.paused: found "yes": it must be true or false`},
		{"maxUnavailable: 2", "firstNodes: 1.5", `p.yaml:24: spec.rollout.firstNodes: found "1.5": it must be a whole number`},
		{"maxUnavailable: 2", "firstNodes: 99999999999", `p.yaml:24: spec.rollout.firstNodes: found "99999999999": it must be a whole number`},
		{"maxUnavailable: 2", "soak: 90", `p.yaml:24: spec.rollout.soak: found "90": it is not a duration; write a number with its unit, such as 90s, 10m or 6h`},
		{"days: [Sat]", "days: [Saturday]", `p.yaml:26: spec.rollout.windows[0].days[0]: found "Saturday": there is no such value; write Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		{"start: 22:00", "start: 2200", `p.yaml:26: spec.rollout.windows[0].start: found "2200": YAML reads this as a number`},
		{"  nodeSelector: {matchLabels: {pool: workers}}\n", "", `p.yaml:6: spec.nodeSelector: it is required; write the labels`},
		{"  nodeSelector: {matchLabels: {pool: workers}}", "  nodeSelector:", `p.yaml:7: spec.nodeSelector: it is required`},
		{"kind: ProxyProfile", "kind: ProxyProfiles", `p.yaml:2: kind: found "ProxyProfiles": this is not what is read here; write kind: ProxyProfile`},
		{"kind: ProxyProfile\n", "", `p.yaml:1: kind: it is missing; write kind: ProxyProfile`},
		{"v1alpha1", "v1", `p.yaml:1: apiVersion: found "proxyward.dev/v1": this is not what is read here; write apiVersion: proxyward.dev/v1alpha1`},
		{"name: corp", "name: Corp", `p.yaml:4: metadata.name: found "Corp": it is not a name for an object`},
		{"  registries:", "  cluster: {}\n  registries:", `p.yaml:20: spec.cluster: it is already written in line 17; keep one of the two`},
		{"  registries:", "  registries: &r", `spec.registries: it uses a YAML anchor or alias; write the value out`},
		{"  targets:", " targets:", `p.yaml:`},
		{"rollout:", "rollout: {}\n---\nx:", `it holds more than one document; give one profile per file`},
		{good, "", `p.yaml: it is empty; write a ProxyProfile`},
		{good, "- a", `it is not a YAML mapping`},
		{good, "a: [", `p.yaml:1: it is not YAML`},
		{good, strings.Repeat("#", maxSize+1), `p.yaml: it is larger than`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%q is not in the good profile", c.old)
		}
		_, err := Parse("p.yaml", []byte(text))
		var problems *Error
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q → %q:\n got %v\nwant %s", c.old, c.new, err, c.want)
		}
	}
}

func TestAllProblemsAreSaidAtOnce(t *testing.T) {
	text := strings.NewReplacer("[Containerd]", "[a]", "maxUnavailable: 2", "maxUnavailable: 0", "name: corp", "name: C").Replace(good)
	_, err := Parse("p.yaml", []byte(text))
	var problems *Error
	if !errors.As(err, &problems) || len(problems.Problems) != 3 || strings.Count(err.Error(), "reading profile: p.yaml:") != 3 {
		t.Errorf("got %v", err)
	}
}

func TestC03_CredentialsInAProxyAreRefusedMasked(t *testing.T) {
	for _, bad := range []string{
		"http://svc:plantedpw@proxy:3128", "http://u:plantedpw#w@host", "http://user@dom:plantedpw@1@proxy:8080",
		"http://svc:planted pw@proxy:3128", "svc:plantedpw@proxy:3128", "http://svc:plantedpw",
		"'http://u:planted\"pw@proxy'",
	} {
		text := strings.Replace(good, "https: http://proxy.corp.example:3128", "https: "+bad, 1)
		_, err := Parse("p.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), "p.yaml:10: spec.proxy.https") {
			t.Errorf("%s: got %v", bad, err)
			continue
		}
		if msg := err.Error(); strings.Contains(msg, "planted") || strings.Contains(msg, "pw") && !strings.Contains(bad, "\"") {
			t.Errorf("%s: the message shows the secret: %s", bad, msg)
		}
		if strings.Contains(bad, "@") && !strings.Contains(err.Error(), "keys username and password") {
			t.Errorf("%s: it is not said where credentials go: %v", bad, err)
		}
	}
	for _, broken := range []string{
		"https: http://svc:plantedpw@proxy: 3128", "https: {http://svc:plantedpw@proxy:3128}", "https: [http://svc:plantedpw@proxy:3128]",
		"https: &http://svc:plantedpw@proxy", "http://svc:plantedpw@proxy:3128: https", "https: \"http://svc:plantedpw@proxy", "https: !http://svc:plantedpw@proxy x",
	} {
		text := strings.Replace(good, "https: http://proxy.corp.example:3128", broken, 1)
		_, err := Parse("p.yaml", []byte(text))
		if err == nil || strings.Contains(err.Error(), "plantedpw") {
			t.Errorf("%s: got %v", broken, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("{apiVersion: proxyward.dev/v1alpha1, kind: ProxyProfile, spec: {targets: {a: b}, proxy: 1}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f", data)
		var problems *Error
		switch {
		case err == nil && v1alpha1.Validate(p).Err() != nil:
			t.Errorf("accepted and not valid: %v", v1alpha1.Validate(p))
		case err != nil && !errors.As(err, &problems):
			t.Errorf("an error that blames nobody: %v", err)
		}
	})
}
