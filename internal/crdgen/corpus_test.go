package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// complete is a profile that uses every field.
const complete = `{
  "apiVersion": "proxyward.dev/v1alpha1", "kind": "ProxyProfile", "metadata": {"name": "corp"},
  "spec": {
    "nodeSelector": {"matchLabels": {"pool": "workers"}, "matchExpressions": [{"key": "gpu", "operator": "NotIn", "values": ["yes"]}]},
    "controlPlane": "Last",
    "proxy": {"http": "http://proxy.corp.example:3128", "https": "http://proxy.corp.example:3128",
              "credentialsSecretName": "corp-proxy", "trustedCA": {"configMapName": "corp-ca", "key": "ca.crt"}},
    "noProxy": {"entries": [{"value": "10.20.0.0/16", "reason": "data centre LAN"}, {"value": "corp.example", "reason": "internal"}], "exclude": ["10.1.0.0/16"]},
    "cluster": {"domain": "cluster.local", "serviceCIDRs": ["10.96.0.0/16"], "podCIDRs": ["10.244.0.0/16"], "nodeCIDRs": ["10.66.0.0/24", "fd00::/64"],
                "apiServer": "api.corp.example:6443", "cloud": "AWS"},
    "registries": {"internal": ["registry.corp.example:5000"]},
    "targets": ["Containerd", "Kubelet"],
    "canary": {"internal": {"image": "registry.corp.example:5000/proxyward/canary:1", "pullSecretName": "canary-pull"},
               "external": {"image": "registry.k8s.io/pause:3.1"}, "timeout": "60s", "recheckInterval": "6h"},
    "drift": "Report",
    "rollout": {"maxUnavailable": "10%", "firstNodes": 1, "soak": "2m", "maxFailures": 1, "drain": "Auto", "drainTimeout": "10m",
                "windows": [{"days": ["Sat", "Sun"], "start": "22:00", "duration": "4h", "timeZone": "Europe/Berlin"}], "paused": false}
  }
}`

// remove as a sample's value removes the field.
const remove = "<remove>"

// sample is one change of the complete profile and whether the result is good.
type sample struct {
	path  string // with dots; numbers index lists
	value any
	good  bool
}

func samples() []sample {
	var out []sample
	add := func(good bool, path string, values ...any) {
		for _, v := range values {
			out = append(out, sample{path, v, good})
		}
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, item func(int) any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = item(i)
		}
		return list
	}
	// Proxies: C3, C71.
	for _, p := range []string{"spec.proxy.http", "spec.proxy.https"} {
		add(true, p, remove, "", "http://proxy", "HTTP://proxy:3128/", "https://10.0.0.1:443", "socks5://[fd00::1]:1080", "http://proxy:65535")
		add(false, p, "proxy:3128", "ftp://proxy:21", "http://u:p@proxy:3128", "http://u:p#w@proxy", "http://user@dom:Pa@1@proxy:8080",
			"http://", "http://proxy:0", "http://proxy:65536", "http://proxy:http", "http://proxy:3128/path", "http://proxy?x", "http://pro xy",
			"http://proxy:3128#", "http://proxy\n", "http://"+long(2048), 7, "http:proxy", "//proxy:3128")
	}
	add(false, "spec.proxy", map[string]any{}, map[string]any{"http": "", "https": ""}, remove)
	add(true, "spec.proxy.credentialsSecretName", remove, "", "a.b-c")
	add(false, "spec.proxy.credentialsSecretName", "Corp", "a/b", "-a", "a b", long(254), "a\x1b")
	add(true, "spec.proxy.trustedCA", remove, map[string]any{"configMapName": "a"})
	add(false, "spec.proxy.trustedCA", map[string]any{}, map[string]any{"key": "x"}, map[string]any{"configMapName": ""}, map[string]any{"configMapName": "a", "key": "a b"})

	// Selector: required, and {} says every node.
	add(true, "spec.nodeSelector", map[string]any{}, map[string]any{"matchLabels": map[string]any{"a": ""}})
	add(false, "spec.nodeSelector", remove, nil, []any{}, map[string]any{"matchLabels": map[string]any{"a": "b\n"}}, map[string]any{"matchLabels": map[string]any{"a\r": "b"}},
		map[string]any{"matchLabels": map[string]any{"a": long(64)}})
	add(true, "spec.nodeSelector.matchExpressions.0.operator", "In", "Exists")
	add(false, "spec.nodeSelector.matchExpressions.0.operator", "Is", "", remove)
	add(false, "spec.nodeSelector.matchExpressions.0.key", remove)
	add(false, "spec.nodeSelector.matchExpressions.0.values.0", "a\x00", long(64))

	// NO_PROXY: C18, C57.
	add(true, "spec.noProxy", remove)
	add(true, "spec.noProxy.entries.0.value", "x", ".corp.example", " 10.0.0.0/8\t", "[fd00::5]:5000", "fd00::5", "10.0.0.0/8:80", "x.com.", long(253))
	add(false, "spec.noProxy.entries.0.value", "*", "*.corp.example", "10.*", "http://x", "a,b", "u@x", "corp.example", "", remove, long(254), 10, "x\n", "x\r", "x\x1b[31m", "x\x00")
	add(true, "spec.noProxy.entries.0.reason", remove, "", "naïve – reason", "a\ttab", strings.Repeat("é", 253))
	add(false, "spec.noProxy.entries.0.reason", "a\rExecStartPre=x", "a\n", "\x1b[31m", "\x00", "\x7f", "\u0085", "\u009b31m", "\u2028", "\u2029", strings.Repeat("é", 254))
	add(true, "spec.noProxy.entries", []any{}, many(2000, func(i int) any {
		return map[string]any{"value": fmt.Sprintf("h%d.%s", i, long(200)), "reason": long(253)}
	}))
	add(false, "spec.noProxy.entries", many(2001, func(i int) any { return map[string]any{"value": fmt.Sprintf("h%d", i)} }))
	add(true, "spec.noProxy.exclude", remove, []any{}, []any{"a", "b"})
	add(false, "spec.noProxy.exclude", []any{"a", "a"}, many(101, func(i int) any { return fmt.Sprint(i) }), []any{"a\n"}, []any{long(254)})

	// Facts: absent, [] and given differ.
	for _, p := range []string{"spec.cluster.serviceCIDRs", "spec.cluster.podCIDRs", "spec.cluster.nodeCIDRs"} {
		add(true, p, remove, []any{}, []any{"10.0.0.0/8", "fd00::/8"}, []any{" 10.0.0.0/8"})
		add(false, p, []any{"10.0.0.1"}, []any{"corp.example/8"}, []any{"10.0.0.0/8,10.1.0.0/16"}, []any{long(65)}, "10.0.0.0/8", many(257, func(i int) any { return "10.0.0.0/8" }))
	}
	add(true, "spec.cluster.apiServer", remove, "", "api", "api:6443", "[fd00::1]:6443", "[fd00::1]", "fd00::1", "10.0.0.1:6443")
	add(false, "spec.cluster.apiServer", "https://api:6443", "api:", "api:0", "api:6443/", "a b", long(261))
	add(true, "spec.cluster.domain", remove, "", "corp.cluster")
	add(false, "spec.cluster.domain", "a b", "a/b", long(254))
	add(true, "spec.cluster.cloud", remove, "None", "OpenStack")
	add(false, "spec.cluster.cloud", "aws", "Oracle")
	add(true, "spec.registries", remove, map[string]any{"internal": []any{}})
	add(true, "spec.registries.internal.0", "registry", "10.0.0.1:5000", "[fd00::1]:5000", "fd00::1")
	add(false, "spec.registries.internal.0", "https://registry", "registry/project", "registry:", "*", "a\x1b", long(261))
	add(false, "spec.registries.internal", []any{"a", "a"}, many(101, func(i int) any { return fmt.Sprintf("h%d", i) }))
	add(true, "spec.targets", remove, []any{"K3s"}, []any{"System", "RKE2", "Docker", "CRIO"})
	add(false, "spec.targets", []any{"containerd"}, []any{"Docker", "Docker"}, []any{"Podman"})

	// Canaries.
	add(true, "spec.canary", remove)
	add(true, "spec.canary.internal.image", "localhost/a:1", "10.0.0.1:5000/a/b@sha256:"+strings.Repeat("a", 64), "[fd00::1]:5000/a:1")
	add(false, "spec.canary.internal.image", "", remove, "pause:3.1", "library/pause:3.1", "registry.k8s.io/pause", "https://registry.k8s.io/pause:3.1", "registry.k8s.io/pause:3.1\n", "registry.k8s.io/pa use:1", long(513))
	add(false, "spec.canary.internal.pullSecretName", "A", "a\n")
	add(true, "spec.canary.timeout", remove, "1s", "1m30s")
	add(false, "spec.canary.timeout", "0s", "-1s", "fast", "60", 60, "", "1s\n")
	add(true, "spec.canary.recheckInterval", "1m", "0.5h")
	add(false, "spec.canary.recheckInterval", "59s", "1d")

	// Rollout: C41.
	add(true, "spec.rollout", remove)
	add(true, "spec.rollout.maxUnavailable", remove, 1, 500, "1%", "10%", "100%")
	add(false, "spec.rollout.maxUnavailable", 0, -1, "0", "0%", "150%", "101%", "010%", "10", "%", "10%%", "10 %", "ten", true)
	add(true, "spec.rollout.firstNodes", remove, 0, 100)
	add(false, "spec.rollout.firstNodes", -1, 101, "1")
	add(true, "spec.rollout.soak", "0s", "0", "1h")
	add(false, "spec.rollout.soak", "-1s", "x", "999999999999h")
	add(true, "spec.rollout.maxFailures", 1, 1000)
	add(false, "spec.rollout.maxFailures", 0, -5)
	add(true, "spec.rollout.drain", remove, "Never")
	add(false, "spec.rollout.drain", "never", "Maybe")
	add(false, "spec.rollout.drainTimeout", "0s")
	add(true, "spec.rollout.windows", remove, []any{}, []any{map[string]any{"start": "00:00", "duration": "24h"}})
	add(false, "spec.rollout.windows", []any{map[string]any{"start": "22:00"}}, []any{map[string]any{"duration": "1h"}}, many(33, func(int) any { return map[string]any{"start": "00:00", "duration": "1h"} }))
	add(true, "spec.rollout.windows.0.days", remove, []any{}, []any{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"})
	add(false, "spec.rollout.windows.0.days", []any{"Saturday"}, []any{"sat"}, []any{"Sat", "Sat"})
	add(false, "spec.rollout.windows.0.start", "24:00", "2200", "9:00", "22:60", "", remove)
	add(true, "spec.rollout.windows.0.duration", "1ns", "24h")
	add(false, "spec.rollout.windows.0.duration", "0s", "24h0m1s", "-1h", "4", remove)
	add(true, "spec.rollout.windows.0.timeZone", remove, "UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Libya")
	add(false, "spec.rollout.windows.0.timeZone", "Local", "Europe/Ber lin", "../../etc/passwd", "/UTC", long(65))
	add(true, "spec.rollout.paused", true, remove)
	add(false, "spec.rollout.paused", "yes", 1)
	add(true, "spec.controlPlane", remove, "Exclude")
	add(false, "spec.controlPlane", "Include", "last")
	add(true, "spec.drift", remove)
	add(false, "spec.drift", "Ignore")
	return out
}

// TestC03_C18_C41_C57_CELAndGoAgree holds the API server's verdict, Validate's and the sample's own
// to each other.
func TestC03_C18_C41_C57_CELAndGoAgree(t *testing.T) {
	a := newAdmission(t, "proxyprofiles")
	if _, errs := a.admit(t, []byte(complete)); len(errs) > 0 {
		t.Fatalf("the complete profile is refused: %v", errs)
	}
	for _, s := range samples() {
		raw := change(t, s)
		name := fmt.Sprintf("%s = %.80q", s.path, fmt.Sprint(s.value))
		_, celErrs := a.admit(t, raw)
		goErr := goVerdict(raw)
		if got := len(celErrs) == 0; got != s.good {
			t.Errorf("%s: the API server admits it: %t, want %t: %v", name, got, s.good, celErrs)
		}
		if got := goErr == nil; got != s.good {
			t.Errorf("%s: Validate admits it: %t, want %t: %v", name, got, s.good, goErr)
		}
		if s.good {
			continue
		}
		for _, e := range celErrs {
			if text := fmt.Sprint(s.value); strings.Contains(text, "@") && strings.Contains(e.Detail, "Pa@1") {
				t.Errorf("%s: the message holds the password: %v", name, e)
			}
		}
	}
}

// TestDefaultsAgree holds SetDefaults to the defaults in the schema.
func TestDefaultsAgree(t *testing.T) {
	a := newAdmission(t, "proxyprofiles")
	const least = `{"apiVersion": "proxyward.dev/v1alpha1", "kind": "ProxyProfile", "metadata": {"name": "corp"},
		"spec": {"nodeSelector": {}, "proxy": {"https": "http://proxy:3128", "trustedCA": {"configMapName": "ca"}}, "canary": {}, "rollout": {"windows": [{"start": "22:00", "duration": "1h"}]}}}`
	obj, errs := a.admit(t, []byte(least))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	stored, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var fromServer, fromGo v1alpha1.ProxyProfile
	if err := json.Unmarshal(stored, &fromServer); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(least), &fromGo); err != nil {
		t.Fatal(err)
	}
	v1alpha1.SetDefaults(&fromGo)
	want, got := encode(t, fromServer), encode(t, fromGo)
	if want != got {
		t.Errorf("defaults differ:\nAPI server %s\nSetDefaults %s", want, got)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// goVerdict decodes and validates as the command line does.
func goVerdict(raw []byte) error {
	var p v1alpha1.ProxyProfile
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return err
	}
	v1alpha1.SetDefaults(&p)
	return v1alpha1.Validate(&p).Err()
}

// change returns the complete profile with one sample's change.
func change(t *testing.T, s sample) []byte {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(complete), &root); err != nil {
		t.Fatal(err)
	}
	steps := strings.Split(s.path, ".")
	at := root
	for _, step := range steps[:len(steps)-1] {
		at = child(t, at, step)
	}
	last := steps[len(steps)-1]
	switch at := at.(type) {
	case map[string]any:
		if s.value == remove {
			delete(at, last)
		} else {
			at[last] = s.value
		}
	case []any:
		at[index(t, last)] = s.value
	default:
		t.Fatalf("%s leads nowhere", s.path)
	}
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func child(t *testing.T, at any, step string) any {
	t.Helper()
	switch at := at.(type) {
	case map[string]any:
		return at[step]
	case []any:
		return at[index(t, step)]
	}
	t.Fatalf("there is no %s", step)
	return nil
}

func index(t *testing.T, step string) int {
	t.Helper()
	var i int
	if _, err := fmt.Sscan(step, &i); err != nil {
		t.Fatal(err)
	}
	return i
}
