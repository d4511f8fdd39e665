package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	username, password = `CORP\svc`, `planted-p@ss:w/rd%40#`
	encodedPassword    = "planted-p%40ss%3Aw%2Frd%2540%23"
)

const profileYAML = `apiVersion: proxyward.dev/v1alpha1
kind: ProxyProfile
metadata: {name: corp}
spec:
  nodeSelector: {}
  proxy:
    http: http://proxy.corp.example:3128
    https: http://proxy.corp.example:3128
    credentialsSecretName: corp-proxy
  noProxy:
    entries:
      - {value: 10.20.0.0/16, reason: data centre LAN}
      - {value: corp.example, reason: internal names}
  cluster:
    domain: cluster.local
    serviceCIDRs: [10.96.0.0/16]
    podCIDRs: [10.244.0.0/16]
    nodeCIDRs: [10.66.0.0/24]
    apiServer: api.corp.example:6443
  registries:
    internal: [registry.corp.example:5000]
`

// desk is a person's directory: a profile, credentials, and a host's tree with containerd.
type desk struct {
	t                          *testing.T
	profile, credentials, tree string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	d := &desk{t: t, profile: filepath.Join(dir, "corp.yaml"), credentials: filepath.Join(dir, "creds"), tree: filepath.Join(dir, "tree")}
	d.write(d.profile, profileYAML)
	d.write(filepath.Join(d.credentials, "username"), username)
	d.write(filepath.Join(d.credentials, "password"), password)
	d.write(filepath.Join(d.tree, "usr/lib/systemd/system/containerd.service"), "[Service]\nExecStart=/usr/bin/containerd\nKillMode=process\n")
	d.write(filepath.Join(d.tree, "etc/containerd/config.toml"), "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/etc/containerd/certs.d\"\n")
	d.write(filepath.Join(d.tree, "etc/containerd/certs.d/docker.io/hosts.toml"), "[host.\"https://10.99.0.7:5000\"]\ncapabilities = [\"pull\", \"resolve\"]\n")
	return d
}

func (d *desk) write(path, content string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func allVerbs() []Verb {
	return []Verb{Render, Lint, Explain, Diff, Preflight, Bootstrap, Remove, Version}
}

// run runs the program as its main does, and expects its exit code.
func (d *desk) run(code int, args ...string) (out, errs string) {
	d.t.Helper()
	var stdout, stderr bytes.Buffer
	app := App{Name: "proxyward", Version: "v0", Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }}
	if got := app.Run(d.t.Context(), args, allVerbs()...); got != code {
		d.t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// flags that name the profile, its credentials and the tree.
func (d *desk) flags(verb string, more ...string) []string {
	return append([]string{verb, "--profile", d.profile, "--credentials", d.credentials, "--host-root", d.tree}, more...)
}

// files are those of Proxyward below /etc, by their path on the host.
func (d *desk) files() map[string]string {
	d.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(d.tree, "etc"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(path, "proxyward") {
			return err
		}
		content, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, d.tree)] = string(content)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return found
}

// The same profile gives the same bytes, whichever verb is asked.
func TestRenderAndBootstrapGiveTheSameBytes(t *testing.T) {
	d := newDesk(t)
	out, _ := d.run(0, d.flags("render", "-o", "json")...)
	var shown rendered
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	d.run(0, d.flags("bootstrap", "--files")...)
	written := d.files()
	if len(shown.Files) != 2 || len(written) != 2 {
		t.Fatalf("rendered %d files, wrote %d", len(shown.Files), len(written))
	}
	secret := `CORP%5Csvc:` + encodedPassword + "@"
	for _, f := range shown.Files {
		masked := strings.ReplaceAll(written[f.Path], secret, "***@")
		if f.Content != masked {
			t.Errorf("%s: rendered\n%s\nwritten\n%s", f.Path, f.Content, masked)
		}
		info, err := os.Stat(filepath.Join(d.tree, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%#o", info.Mode().Perm()); got != f.Mode {
			t.Errorf("%s: mode %s, rendered %s", f.Path, got, f.Mode)
		}
	}
	env := written["/etc/proxyward/env/containerd.service.env"]
	if strings.Count(env, secret) != 4 {
		t.Errorf("the credentials are not in the environment file four times: %s", strings.ReplaceAll(env, secret, "<secret>"))
	}
	if !strings.Contains(env, "10.99.0.7") {
		t.Error("the private mirror of this host is not in NO_PROXY")
	}
}

func TestFilesAreWrittenOnceAndRemovedWhole(t *testing.T) {
	d := newDesk(t)
	d.run(3, d.flags("diff")...)
	if len(d.files()) > 0 {
		t.Fatal("diff wrote something")
	}
	d.run(0, d.flags("bootstrap", "--files")...)
	before := d.files()
	stat := func() []os.FileInfo {
		var infos []os.FileInfo
		for _, path := range []string{"/etc/proxyward/env/containerd.service.env", "/etc/systemd/system/containerd.service.d/zz-proxyward.conf"} {
			info, err := os.Stat(filepath.Join(d.tree, path))
			if err != nil {
				t.Fatal(err)
			}
			infos = append(infos, info)
		}
		return infos
	}
	first := stat()
	d.run(0, d.flags("bootstrap", "--files")...)
	for i, info := range stat() {
		if !os.SameFile(first[i], info) || !first[i].ModTime().Equal(info.ModTime()) {
			t.Errorf("%s was written again", info.Name())
		}
	}
	d.run(0, d.flags("diff")...)

	foreign := filepath.Join(d.tree, "etc/systemd/system/containerd.service.d/http-proxy.conf")
	d.write(foreign, "[Service]\n")
	out, _ := d.run(0, "remove", "--host-root", d.tree, "-o", "json")
	if len(before) != 2 || len(d.files()) != 0 {
		t.Errorf("left: %v\n%s", d.files(), out)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("somebody else's drop-in: %v", err)
	}
}

// No output of any verb shows a password, in any form.
func TestC54_NoVerbShowsAPassword(t *testing.T) {
	d := newDesk(t)
	var all strings.Builder
	collect := func(code int, args ...string) {
		out, errs := d.run(code, args...)
		all.WriteString(out + errs)
	}
	for _, format := range []string{"text", "json", "yaml"} {
		collect(0, d.flags("render", "-o", format)...)
		collect(3, d.flags("diff", "-o", format)...)
		collect(0, "explain", "-p", d.profile, "-o", format, "https://svc:"+encodedPassword+"@registry.example")
		collect(0, d.flags("bootstrap", "--files", "-o", format)...)
		collect(0, "remove", "--host-root", d.tree, "-o", format)
	}
	d.write(d.profile, strings.Replace(profileYAML, "http: http://", "http: http://svc:"+encodedPassword+"@", 1))
	collect(2, "lint", "-p", d.profile)
	d.write(d.profile, strings.Replace(profileYAML, "http: http://", "http: http://svc:"+password+"@", 1))
	collect(2, "lint", "-p", d.profile)
	if strings.Contains(all.String(), "planted") {
		t.Errorf("a password is shown:\n%s", all.String())
	}
}

func TestExitCodesAndWhatIsSaid(t *testing.T) {
	d := newDesk(t)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	d.write(bad, strings.Replace(profileYAML, "apiServer: api.corp.example:6443", "apiserver: x", 1))
	star := filepath.Join(t.TempDir(), "star.yaml")
	d.write(star, strings.Replace(profileYAML, "10.20.0.0/16", `"*"`, 1))
	rke2 := filepath.Join(t.TempDir(), "rke2.yaml")
	d.write(rke2, profileYAML+"  targets: [RKE2]\n")
	tests := []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no verb", nil, 0, []string{"Available Commands"}},
		{"an unknown verb", []string{"frobnicate"}, 2, []string{"frobnicate", "--help"}},
		{"an unknown flag", []string{"lint", "--frob"}, 2, []string{"--frob"}},
		{"an unknown format", []string{"version", "-o", "xml"}, 2, []string{"text, json or yaml"}},
		{"no profile", []string{"lint"}, 2, []string{"--profile FILE"}},
		{"a profile that is not there", []string{"lint", "-p", "nowhere.yaml"}, 2, []string{"nowhere.yaml"}},
		{"an unknown field", []string{"lint", "-p", bad}, 2, []string{"bad.yaml:19", "spec.cluster.apiserver", "nothing was changed"}},
		{"C18 a star", []string{"lint", "-p", star}, 2, []string{"spec.noProxy.entries[0].value"}},
		{"no credentials", []string{"render", "-p", d.profile}, 2, []string{"corp-proxy", "username and password"}},
		{"a target that is not there", []string{"diff", "-p", rke2, "--credentials", d.credentials, "--host-root", d.tree}, 2, []string{"spec.targets", "RKE2"}},
		{"a proof without a canary", d.flags("bootstrap", "--prove"), 2, []string{"spec.canary"}},
		{"a proof without a systemd", d.flags("bootstrap"), 2, []string{"--files"}},
		{"no host to explain", []string{"explain", "-p", d.profile}, 2, []string{"no host given", "proxyward explain --help"}},
		{"an argument too many", []string{"version", "x"}, 2, []string{`found "x"`, "takes flags only", "proxyward version --help"}},
		{"a tree to clean that is not there", []string{"remove", "--host-root", "nowhere"}, 2, []string{"nowhere", "nothing was changed"}},
		{"a tree to write that is not there", []string{"bootstrap", "--files", "-p", d.profile, "--credentials", d.credentials, "--host-root", "nowhere"}, 2, []string{"nowhere", "nothing was changed"}},
		{"a tree to compare that is not there", []string{"diff", "-p", d.profile, "--credentials", d.credentials, "--host-root", "nowhere"}, 2, []string{"nowhere", "nothing was changed"}},
		{"what to do on a tree", d.flags("diff"), 3, []string{"bootstrap --files with the same flags"}},
		{"usable", []string{"lint", "-p", d.profile}, 0, []string{"usable", "next:"}},
		{"version", []string{"version"}, 0, []string{"proxyward v0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d.t = t
			out, errs := d.run(tt.code, tt.args...)
			for _, want := range tt.says {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%q is not said:\n%s%s", want, out, errs)
				}
			}
		})
	}
	if len(d.files()) > 0 {
		t.Error("something was written")
	}
}

// With --files the plan may name a restart, so how it ended says that there was none.
func TestFilesSaysThatNothingWasRestarted(t *testing.T) {
	d := newDesk(t)
	out, _ := d.run(0, d.flags("bootstrap", "--files")...)
	if !strings.Contains(out, "nothing was restarted") {
		t.Errorf("it is not said:\n%s", out)
	}
}

func TestExplain(t *testing.T) {
	d := newDesk(t)
	out, _ := d.run(0, "explain", "-p", d.profile, "-o", "json", "registry.k8s.io", "10.20.3.4", "registry.corp.example:5000", "::1")
	var got []explained
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"Proxy http://proxy.corp.example:3128", "Direct 10.20.0.0/16", "Direct corp.example", "Direct "}
	for i, e := range got {
		by := e.Proxy
		if e.Entry != nil {
			by = e.Entry.Value
		}
		if s := string(e.Route) + " " + by; s != want[i] {
			t.Errorf("%s: %q, want %q", e.Asked, s, want[i])
		}
	}
	out, _ = d.run(0, "explain", "-p", d.profile, "--client", "all", "10.20.3.4")
	if !strings.Contains(out, "wget") || strings.Count(out, "\n") < 8 {
		t.Errorf("all clients: %s", out)
	}
	d.run(2, "explain", "-p", d.profile, "--client", "netscape", "x")
}

// Every verb says what it is for, how it ends and how it is called.
func TestHelpIsWhole(t *testing.T) {
	d := newDesk(t)
	for _, verb := range allVerbs() {
		cmd := verb(&App{Name: "proxyward"}, &common{})
		out, _ := d.run(0, cmd.Name(), "--help")
		for _, want := range []string{"Exit codes: 0 ", "Examples:\n  proxyward " + cmd.Name()} {
			if !strings.Contains(out, want) {
				t.Errorf("%s --help lacks %q", cmd.Name(), want)
			}
		}
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			if len(line) > 90 {
				t.Errorf("%s --help has a line of %d characters: %s", cmd.Name(), len(line), line)
			}
		}
	}
}
