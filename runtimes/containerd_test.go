package runtimes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/runtimes"
)

const anyContainerd = "usr/lib/systemd/system/containerd.service"

// tree makes a host of files; a content that begins with -> is a symbolic link.
func tree(t *testing.T, files map[string]string) runtimes.HostFS {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(text, "->"); isLink {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := hostfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func openTestdata(t *testing.T, dir string) runtimes.HostFS {
	t.Helper()
	root, err := hostfs.Open(filepath.Join("testdata", "hosts", dir))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// one finds the one daemon of a target on a host.
func one(t *testing.T, host runtimes.HostFS, target v1alpha1.Target) runtimes.Runtime {
	t.Helper()
	found, err := runtimes.Detect(host, target)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Refused != "" {
		t.Fatalf("found %+v, want one daemon", found)
	}
	return found[0].Runtime
}

// hops writes the expected hops of an image down: r resolves, p pulls, m is a mirror, ? is doubted.
func hops(t *testing.T, r runtimes.Runtime, image string) string {
	t.Helper()
	list, err := runtimes.ExpectedHops(r, image)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range list {
		marks := ""
		for _, m := range []struct {
			set  bool
			mark string
		}{{h.Resolves, "r"}, {h.Pulls, "p"}, {h.Mirror, "m"}, {h.Doubt != "", "?"}} {
			if m.set {
				marks += m.mark
			}
		}
		out = append(out, h.URL+" "+marks)
	}
	return strings.Join(out, ", ")
}

func TestC16_C62_ContainerdHosts(t *testing.T) {
	certs := map[string]string{
		anyContainerd:                  "[Service]\nKillMode=process\n",
		"etc/containerd/config.toml":   "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/a:/b\"\n",
		"a/docker.io/hosts.toml":       "[host.\"https://z.example:5000\"]\ncapabilities = [\"pull\", \"resolve\"]\n[host.\"a.example\"]\n",
		"a/r.example_5000_/hosts.toml": "server = \"https://r.example:5000\"\n",
		"a/r.example:5000/hosts.toml":  "server = \"https://wrong.example\"\n",
		"a/push.example/hosts.toml":    "[host.\"https://m.example\"]\ncapabilities = [\"push\"]\n",
		"a/pull.example/hosts.toml":    "[host.\"https://m.example\"]\ncapabilities = [\"pull\"]\n",
		"b/docker.io/hosts.toml":       "server = \"https://wrong.example\"\n",
		"b/only-b.example/hosts.toml":  "[host.\"https://m.example/v2/\"]\n",
		"b/certs-only.example/ca.crt":  "",
		"b/_default/hosts.toml":        "[host.\"https://default.example\"]\n",
	}
	r := one(t, tree(t, certs), v1alpha1.TargetContainerd)
	for image, want := range map[string]string{
		"nginx":                          "https://z.example:5000 rpm, https://a.example rpm, https://registry-1.docker.io rp",
		"docker.io/library/nginx:1":      "https://z.example:5000 rpm, https://a.example rpm, https://registry-1.docker.io rp",
		"r.example:5000/x/y@sha256:abcd": "https://r.example:5000 rp",
		"push.example/x":                 "https://push.example rp",
		"pull.example/x":                 "https://m.example pm, https://pull.example rp",
		"only-b.example/x":               "https://m.example rpm, https://only-b.example rp",
		"certs-only.example/x":           "https://certs-only.example rp",
		"other.example/x":                "https://default.example rpm, https://other.example rp",
	} {
		if got := hops(t, r, image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}

func TestContainerdDefaultOfTheFirstFolderWins(t *testing.T) {
	r := one(t, tree(t, map[string]string{
		anyContainerd:                "[Service]\n",
		"etc/containerd/config.toml": "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/a:/b'\n",
		"a/_default/hosts.toml":      "[host.\"https://first.example\"]\n",
		"b/docker.io/hosts.toml":     "[host.\"https://second.example\"]\n",
	}), v1alpha1.TargetContainerd)
	if got := hops(t, r, "nginx"); got != "https://first.example rpm, https://registry-1.docker.io rp" {
		t.Errorf("got %s", got)
	}
}

func TestContainerdErrorsNameTheFile(t *testing.T) {
	config := "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/a\"\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"broken config", map[string]string{"etc/containerd/config.toml": "version = 2\nx = \"s3cret\ny = 1\n"}, []string{"/etc/containerd/config.toml", "line 2"}},
		{"broken hosts", map[string]string{"etc/containerd/config.toml": config, "a/x/hosts.toml": "[host.\"https://u:s3cret@m\"\n"}, []string{"/a/x/hosts.toml", "line 1"}},
		{"a host that is none", map[string]string{"etc/containerd/config.toml": config, "a/x/hosts.toml": "[host.\"https://u:s3cret@\"]\n"}, []string{"/a/x/hosts.toml", "***@"}},
		{"absent import", map[string]string{"etc/containerd/config.toml": "imports = [\"/none.toml\"]\n"}, []string{"/etc/containerd/config.toml", "/none.toml"}},
		{"directory", map[string]string{"etc/containerd/config.toml/x": ""}, []string{"/etc/containerd/config.toml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.files[anyContainerd] = "[Service]\n"
			_, err := runtimes.Detect(tree(t, tc.files), v1alpha1.TargetContainerd)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q does not name %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error %q shows a secret", err)
			}
		})
	}
}

func TestContainerdRegistryLostByALaterImport(t *testing.T) {
	r := one(t, tree(t, map[string]string{
		anyContainerd:                "[Service]\n",
		"etc/containerd/config.toml": "version = 2\nimports = [\"x.toml\", \"config.toml\"]\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/a\"\n",
		"etc/containerd/x.toml":      "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"x\"\n",
		"a/docker.io/hosts.toml":     "[host.\"https://m.example\"]\n",
		"a/not-a-folder":             "",
	}), v1alpha1.TargetContainerd)
	if got := hops(t, r, "nginx"); got != "https://m.example rpm?, https://registry-1.docker.io rp?" {
		t.Errorf("got %s", got)
	}
}

func TestKillModeDecidesWhatARestartDoes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  runtimes.Tristate
		why   string
	}{
		{"process", map[string]string{anyContainerd: "[Service]\nKillMode=process\n"}, runtimes.False, "/" + anyContainerd},
		{"default", map[string]string{anyContainerd: "[Service]\nExecStart=/x\n"}, runtimes.True, "systemd's default"},
		{"reset", map[string]string{anyContainerd: "[Service]\nKillMode=process\nKillMode=\n"}, runtimes.True, "systemd's default"},
		{"nonsense", map[string]string{anyContainerd: "[Service]\nKillMode=all\n"}, runtimes.Unknown, "does not know"},
		{"drop-in in /run", map[string]string{anyContainerd: "[Service]\nKillMode=process\n", "run/systemd/system/containerd.service.d/x.conf": "[Service]\nKillMode=mixed\n"}, runtimes.True, "/run/systemd"},
		{"drop-in of the type", map[string]string{anyContainerd: "[Service]\nExecStart=/x\n", "etc/systemd/system/service.d/x.conf": "[Service]\nKillMode=process\n"}, runtimes.False, "service.d"},
		{"drop-ins by name, whatever the folder", map[string]string{
			anyContainerd: "[Service]\nKillMode=process\n",
			"etc/systemd/system/containerd.service.d/10.conf":     "[Service]\nKillMode=mixed\n",
			"usr/lib/systemd/system/containerd.service.d/20.conf": "[Service]\nKillMode=process\n",
		}, runtimes.False, "20.conf"},
		{"nearer drop-in of the same name", map[string]string{
			anyContainerd: "[Service]\nKillMode=process\n",
			"etc/systemd/system/containerd.service.d/10.conf":     "[Service]\nKillMode=mixed\n",
			"usr/lib/systemd/system/containerd.service.d/10.conf": "[Service]\nKillMode=process\n",
		}, runtimes.True, "/etc/"},
		{"masked drop-in", map[string]string{
			anyContainerd: "[Service]\nKillMode=process\n",
			"etc/systemd/system/containerd.service.d/10.conf":     "->/dev/null",
			"usr/lib/systemd/system/containerd.service.d/10.conf": "[Service]\nKillMode=mixed\n",
		}, runtimes.False, "/usr/"},
		{"drop-in of an alias", map[string]string{
			anyContainerd:                             "[Service]\nKillMode=process\n",
			"etc/systemd/system/cri.service":          "->/usr/lib/systemd/system/containerd.service",
			"etc/systemd/system/cri.service.d/x.conf": "[Service]\nKillMode=mixed\n",
		}, runtimes.True, "cri.service.d"},
		{"nearer unit file", map[string]string{
			anyContainerd:                           "[Service]\nKillMode=mixed\n",
			"etc/systemd/system/containerd.service": "[Service]\nKillMode=process\n",
		}, runtimes.False, "/etc/"},
		{"wrong section", map[string]string{anyContainerd: "[Unit]\nKillMode=process\n[Service]\n"}, runtimes.True, "systemd's default"},
		{"not a drop-in", map[string]string{anyContainerd: "[Service]\nKillMode=process\n",
			"etc/systemd/system/containerd.service.d/x.conf.bak": "[Service]\nKillMode=mixed\n",
			"etc/systemd/system/containerd.service.d/.x.conf":    "[Service]\nKillMode=mixed\n"}, runtimes.False, "/usr/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := one(t, tree(t, tc.files), v1alpha1.TargetContainerd).Restart
			if got.KillsContainers != tc.want || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %v because %s, want %v because of %s", got.KillsContainers, got.Why, tc.want, tc.why)
			}
		})
	}
}

func TestDetectFollowsAliases(t *testing.T) {
	host := tree(t, map[string]string{
		"etc/systemd/system/containerd.service": "->mine.service",
		"etc/systemd/system/mine.service":       "[Service]\n",
	})
	if r := one(t, host, v1alpha1.TargetContainerd); r.Unit != "mine.service" {
		t.Errorf("got %s", r.Unit)
	}
	circle := tree(t, map[string]string{
		"etc/systemd/system/containerd.service": "->a.service",
		"etc/systemd/system/a.service":          "->containerd.service",
	})
	if _, err := runtimes.Detect(circle, v1alpha1.TargetContainerd); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("got %v", err)
	}
}

func TestDetectWithoutTargets(t *testing.T) {
	files := map[string]string{}
	for _, a := range runtimes.All() {
		files["usr/lib/systemd/system/"+a.Units()[0]] = "[Service]\n"
	}
	found, err := runtimes.Detect(tree(t, files))
	if err != nil {
		t.Fatal(err)
	}
	var got []v1alpha1.Target
	for _, f := range found {
		got = append(got, f.Adapter.Target())
	}
	want := slices.DeleteFunc([]v1alpha1.Target{v1alpha1.TargetContainerd, v1alpha1.TargetDocker}, func(target v1alpha1.Target) bool {
		return !slices.ContainsFunc(runtimes.All(), func(a runtimes.Adapter) bool { return a.Target() == target })
	})
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestExpectedHopsWithoutLists(t *testing.T) {
	for image, want := range map[string]string{
		"nginx":                    "https://registry-1.docker.io rp",
		"user/app:1":               "https://registry-1.docker.io rp",
		"index.docker.io/user/app": "https://registry-1.docker.io rp",
		"localhost/app":            "https://localhost rp",
		"localhost:5000/app":       "http://localhost:5000 rp",
		"127.0.0.1:443/app":        "https://127.0.0.1:443 rp",
		"[::1]:5000/app":           "http://[::1]:5000 rp",
		"10.0.0.1:5000/app:1":      "https://10.0.0.1:5000 rp",
	} {
		if got := hops(t, runtimes.Runtime{}, image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
	for _, image := range []string{"", "https://r.example/x", "r.example/", "a b"} {
		if got, err := runtimes.ExpectedHops(runtimes.Runtime{}, image); err == nil {
			t.Errorf("%q gives %+v", image, got)
		}
	}
}
