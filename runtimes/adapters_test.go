package runtimes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
	"github.com/proxyward/proxyward/runtimes"
)

func TestC42_DockerWithoutLiveRestoreKillsContainers(t *testing.T) {
	const unit = "lib/systemd/system/docker.service"
	for _, tc := range []struct {
		name, unit, config string
		want               runtimes.Tristate
		why                string
	}{
		{"no configuration", "KillMode=process", "", runtimes.True, "is not set"},
		{"off", "KillMode=process", `{"live-restore": false}`, runtimes.True, "live-restore is false in /etc/docker/daemon.json"},
		{"on", "KillMode=process", `{"live-restore": true}`, runtimes.False, "live-restore is true in /etc/docker/daemon.json"},
		{"on by flag", "KillMode=process\nExecStart=/usr/bin/dockerd --live-restore -H fd://", "", runtimes.False, "--live-restore is true in /" + unit},
		{"off by flag", "ExecStart=/usr/bin/dockerd --live-restore=false", "", runtimes.True, "--live-restore is false"},
		{"on, but all is killed", "KillMode=control-group", `{"live-restore": true}`, runtimes.Unknown, "KillMode=control-group"},
		{"byte order mark", "KillMode=process", "\ufeff{\"live-restore\": true}", runtimes.False, "is true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string]string{unit: "[Service]\n" + tc.unit + "\n"}
			if tc.config != "" {
				files["etc/docker/daemon.json"] = tc.config
			}
			got := one(t, tree(t, files), v1alpha1.TargetDocker).Restart
			if got.KillsContainers != tc.want || !strings.Contains(got.Why, tc.why) || got.Refuse != "" {
				t.Errorf("got %+v, want %v because of %s", got, tc.want, tc.why)
			}
		})
	}
}

func TestC10_DockerProxiesOverride(t *testing.T) {
	r := one(t, tree(t, map[string]string{
		"lib/systemd/system/docker.service": "[Service]\nExecStart=/usr/bin/dockerd --config-file /etc/d.json --http-proxy=http://u:s3cret@flag:1\n",
		"etc/d.json":                        `{"proxies": {"https-proxy": "http://u:s3cret@key:1", "no-proxy": "a,b"}}`,
	}), v1alpha1.TargetDocker)
	want := []runtimes.Override{
		{File: "/lib/systemd/system/docker.service", Key: "--http-proxy", Variable: "HTTP_PROXY", Value: "http://***@flag:1"},
		{File: "/etc/d.json", Key: "proxies.https-proxy", Variable: "HTTPS_PROXY", Value: "http://***@key:1"},
		{File: "/etc/d.json", Key: "proxies.no-proxy", Variable: "NO_PROXY", Value: "a,b"},
	}
	if len(r.Overrides) != len(want) {
		t.Fatalf("got %+v, want %+v", r.Overrides, want)
	}
	for i := range want {
		if r.Overrides[i] != want[i] {
			t.Errorf("got %+v, want %+v", r.Overrides[i], want[i])
		}
	}
}

func TestDockerKeyAndFlagTogetherRefuse(t *testing.T) {
	for key, flag := range map[string]string{
		`{"hosts": ["fd://"]}`:                            "-H fd://",
		`{"live-restore": true}`:                          "--live-restore",
		`{"proxies": {"http-proxy": "http://x"}}`:         "--http-proxy http://x",
		`{"proxies": {"https-proxy": "http://u:pw@x:1"}}`: "--https-proxy=http://x",
		`{"proxies": {"no-proxy": "x"}}`:                  "--no-proxy=x",
	} {
		r := one(t, tree(t, map[string]string{
			"lib/systemd/system/docker.service": "[Service]\nExecStart=/usr/bin/dockerd " + flag + "\n",
			"etc/docker/daemon.json":            key,
		}), v1alpha1.TargetDocker)
		if !strings.Contains(r.Restart.Refuse, "does not start with both") || strings.Contains(r.Restart.Refuse, "pw") {
			t.Errorf("%s with %s: %q", key, flag, r.Restart.Refuse)
		}
	}
}

func TestDockerHasEveryMirrorOfItsFlags(t *testing.T) {
	r := one(t, tree(t, map[string]string{
		"lib/systemd/system/docker.service": "[Service]\nExecStart=/usr/bin/dockerd --registry-mirror=https://a.corp.example --registry-mirror https://b.corp.example\n",
	}), v1alpha1.TargetDocker)
	want := []string{"https://a.corp.example", "https://b.corp.example"}
	if len(r.Hosts) != 1 || !slices.Equal(r.Hosts[0].Hosts, want) {
		t.Errorf("mirrors %+v, want %q", r.Hosts, want)
	}
}

func TestMalformedFilesAreErrorsWithTheirPlace(t *testing.T) {
	for _, tc := range []struct {
		name   string
		target v1alpha1.Target
		unit   string
		file   string
		text   string
		want   string
	}{
		{"docker syntax", v1alpha1.TargetDocker, "docker.service", "etc/docker/daemon.json", "{\n  \"a\": 1,\n  \"s3cret\"\n}", "/etc/docker/daemon.json as JSON: line 4, column 1"},
		{"docker type", v1alpha1.TargetDocker, "docker.service", "etc/docker/daemon.json", "{\n \"live-restore\": \"s3cret\"}", `"live-restore" holds a string`},
		{"docker mirror", v1alpha1.TargetDocker, "docker.service", "etc/docker/daemon.json", `{"registry-mirrors": ["http://u:s3cret@"]}`, "/etc/docker/daemon.json"},
		{"crio", v1alpha1.TargetCRIO, "crio.service", "etc/crio/crio.conf.d/9.conf", "[crio\n", "/etc/crio/crio.conf.d/9.conf as TOML: line 1"},
		{"registries", v1alpha1.TargetCRIO, "crio.service", "etc/containers/registries.conf", "[[registry]]\nlocation = 1\n", "/etc/containers/registries.conf as TOML: line 2"},
		{"registries location", v1alpha1.TargetCRIO, "crio.service", "etc/containers/registries.conf", "[[registry]]\nprefix = \"x\"\nlocation = \"u:s3cret@\"\n", "/etc/containers/registries.conf"},
		{"k3s", v1alpha1.TargetK3s, "k3s.service", "etc/rancher/k3s/registries.yaml", "mirrors: [s3cret\n", "/etc/rancher/k3s/registries.yaml as YAML"},
		{"k3s config", v1alpha1.TargetK3s, "k3s.service", "etc/rancher/k3s/config.yaml", "token: s3cret\ndocker: s3cret\n", "/etc/rancher/k3s/config.yaml as YAML"},
		{"rke2 endpoint", v1alpha1.TargetRKE2, "rke2-agent.service", "etc/rancher/rke2/registries.yaml", "mirrors: {x: {endpoint: ['u:s3cret@']}}\n", "/etc/rancher/rke2/registries.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := runtimes.Detect(tree(t, map[string]string{"lib/systemd/system/" + tc.unit: "[Service]\n", tc.file: tc.text}), tc.target)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error %q shows the text", err)
			}
		})
	}
}

func TestCrioRefusesARestartThatWipes(t *testing.T) {
	base := func() map[string]string {
		return map[string]string{
			"usr/lib/systemd/system/crio.service": "[Service]\n",
			"run/crio/version":                    `"1.33.0"`,
			"var/lib/dpkg/status":                 "Package: cri-o\nVersion: 1.34.1-1\n",
		}
	}
	for _, tc := range []struct {
		name   string
		change func(map[string]string)
		want   runtimes.Tristate
		refuse bool
	}{
		{"another minor version", func(map[string]string) {}, runtimes.True, true},
		{"the same", func(f map[string]string) { f["run/crio/version"] = `"1.34.0"` }, runtimes.False, false},
		{"no package database", func(f map[string]string) { delete(f, "var/lib/dpkg/status") }, runtimes.Unknown, false},
		{"another package", func(f map[string]string) { f["var/lib/dpkg/status"] = "Package: crio\nVersion: 1.34.1-1\n" }, runtimes.Unknown, false},
		{"unreadable version", func(f map[string]string) { f["run/crio/version"] = "{}" }, runtimes.Unknown, false},
		{"not running", func(f map[string]string) { delete(f, "run/crio/version") }, runtimes.False, false},
		{"wiping is off", func(f map[string]string) { f["etc/crio/crio.conf"] = "[crio]\ninternal_wipe = false\n" }, runtimes.False, false},
		{"version file elsewhere", func(f map[string]string) { f["etc/crio/crio.conf"] = "[crio]\nversion_file = \"/x\"\n" }, runtimes.False, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := base()
			tc.change(files)
			got := one(t, tree(t, files), v1alpha1.TargetCRIO).Restart
			if got.KillsContainers != tc.want || (got.Refuse != "") != tc.refuse || got.Why == "" {
				t.Errorf("got %+v, want %v, refused %v", got, tc.want, tc.refuse)
			}
		})
	}
}

func TestC16_CrioHosts(t *testing.T) {
	found, err := runtimes.Detect(openTestdata(t, "crio/debian"), v1alpha1.TargetCRIO)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %+v: %v", found, err)
	}
	for image, want := range map[string]string{
		"nginx":                 "https://mirror.corp.example:5000/hub rpm, https://tags.corp.example rpm, https://registry-1.docker.io rp",
		"nginx@sha256:00":       "https://mirror.corp.example:5000/hub rpm, https://registry-1.docker.io rp",
		"a.quay.example/x":      "https://quay-cache.corp.example rpm",
		"quay.example/x":        "https://quay.example rp",
		"replaced.example/x":    "",
		"k8s.example/team/x":    "https://k8s.example rp",
		"k8s.example/team/x@s:": "https://registry-1.docker.io/team rpm, https://k8s.example rp",
		"k8s.example/teams/x@s": "https://k8s.example rp",
	} {
		if got := hops(t, found[0].Runtime, image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}

func TestAPIServerAsTheKubeletReachesIt(t *testing.T) {
	const unit = "lib/systemd/system/kubelet.service"
	config := func(server string) string {
		return "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\nclusters: [{name: b, cluster: {server: '" + server + "'}}]\n"
	}
	for _, tc := range []struct {
		name     string
		files    map[string]string
		want, at string
		err      string
	}{
		{"port", map[string]string{unit: "[Service]\nExecStart=/k --kubeconfig=/c\n", "c": config("https://api.example:6443")}, "api.example:6443", "/c", ""},
		{"default port", map[string]string{unit: "[Service]\nExecStart=/k --kubeconfig /c\n", "c": config("https://api.example")}, "api.example:443", "/c", ""},
		{"IPv6", map[string]string{unit: "[Service]\nExecStart=/k --kubeconfig /c\n", "c": config("https://[fd00::1]:6443/")}, "[fd00::1]:6443", "/c", ""},
		{"from an environment file", map[string]string{unit: "[Service]\nEnvironmentFile=-/e\nExecStart=/k $KUBELET_EXTRA_ARGS\n",
			"e": "KUBELET_EXTRA_ARGS=--v=2 --kubeconfig=/c\n", "c": config("http://127.0.0.1")}, "127.0.0.1:80", "/c", ""},
		{"not joined yet", map[string]string{unit: "[Service]\nExecStart=/k --kubeconfig /c --bootstrap-kubeconfig ${B}\nEnvironment=B=/b\n", "b": config("https://api:1")}, "api:1", "/b", ""},
		{"alone", map[string]string{unit: "[Service]\nExecStart=/k\n"}, "", "", ""},
		{"no such context", map[string]string{unit: "[Service]\nExecStart=/k --kubeconfig=/c\n", "c": "current-context: x\n"}, "", "/c", "names no cluster"},
		{"no URL", map[string]string{unit: "[Service]\nExecStart=/k --kubeconfig=/c\n", "c": config("api.example")}, "", "/c", "is not https://host"},
		{"no YAML", map[string]string{unit: "[Service]\nExecStart=/k --kubeconfig=/c\n", "c": "a: [\n"}, "", "", "/c as YAML"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, file, err := runtimes.APIServer(tree(t, tc.files), "kubelet.service")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want || file != tc.at {
				t.Errorf("got %q from %q (%v), want %q from %q", got, file, err, tc.want, tc.at)
			}
		})
	}
}

func TestC56_ThePrefixedVariableWinsInTheRuntime(t *testing.T) {
	host := openTestdata(t, "k3s/server")
	u, err := runtimes.FindUnit(host, "k3s.service")
	if err != nil {
		t.Fatal(err)
	}
	env := runtimes.RuntimeEnvironment(u.Environment(host), "CONTAINERD_")
	if len(env) != 1 || env[0].Name != "HTTPS_PROXY" || env[0].Value != "http://runtime:1" ||
		len(env[0].Loses) != 1 || env[0].Loses[0].Value != "http://all:1" {
		t.Errorf("got %+v, want the prefixed value, and the other one beaten by it", env)
	}
	if plain := runtimes.RuntimeEnvironment(u.Environment(host), ""); len(plain) != 2 {
		t.Errorf("without a prefix: got %+v, want both as they stand", plain)
	}
}

// TestEveryAdapterHonoursItsEnvironmentFile renders for each adapter and reads back what its unit
// and its runtime would get.
func TestC08_RenderedEnvironmentReachesEveryRuntime(t *testing.T) {
	for _, a := range runtimes.All() {
		unit := a.Units()[0]
		host := tree(t, map[string]string{"lib/systemd/system/" + unit: "[Service]\nEnvironment=HTTPS_PROXY=http://old:1 http_proxy=http://old:1\n"})
		r := one(t, host, a.Target())
		out, err := runtimes.Render(runtimes.RenderInput{Profile: "p", Revision: "r", Target: a.Target(), Unit: unit, Prefix: r.Prefix,
			Environment: proxyenv.Environment{Vars: []proxyenv.Var{{Name: "HTTPS_PROXY", Value: proxyenv.PlainSecret("http://new:1")}}, Unset: []string{"http_proxy"}}})
		if err != nil {
			t.Fatal(err)
		}
		u, err := runtimes.FindUnit(host, unit)
		if err != nil {
			t.Fatal(err)
		}
		var envFile []byte
		for _, f := range out.Files {
			if f.Path == runtimes.DropInPath(unit) {
				u.Sources = append(u.Sources, unitfile.Source{Path: f.Path, Content: f.Content})
			} else {
				envFile = f.Content
			}
		}
		env := unitfile.Effective(unitfile.Input{Unit: unit, Files: u.Sources, Read: func(string) ([]byte, error) { return envFile, nil }})
		for _, v := range runtimes.RuntimeEnvironment(env, r.Prefix) {
			if want := map[string]string{"HTTPS_PROXY": "http://new:1"}[v.Name]; v.Value != want {
				t.Errorf("%s: %s is %q, want %q", a.Target(), v.Name, v.Value, want)
			}
		}
	}
}
