package drift

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/runtimes"
)

func TestObserveOthers(t *testing.T) {
	const (
		etc   = "/etc/systemd/system/containerd.service.d/"
		plain = "[Service]\nEnvironment=HTTPS_PROXY=http://other:1\n"
	)
	tests := map[string]struct {
		files map[string]string
		want  []string // path[ wins][ names][ !problem]
	}{
		"nothing": {nil, nil},
		"the unit file itself": {
			map[string]string{"/usr/lib/systemd/system/containerd.service": plain},
			[]string{"/usr/lib/systemd/system/containerd.service HTTPS_PROXY"},
		},
		"a nearer unit file hides one farther away": {
			map[string]string{"/usr/lib/systemd/system/containerd.service": plain, "/etc/systemd/system/containerd.service": "[Service]\n"},
			nil,
		},
		"C08: earlier and later Environment= both lose to our file": {
			map[string]string{etc + "http-proxy.conf": plain, etc + "zzz.conf": plain},
			[]string{etc + "http-proxy.conf HTTPS_PROXY", etc + "zzz.conf HTTPS_PROXY"},
		},
		"C08: DefaultEnvironment=": {
			map[string]string{
				"/etc/systemd/system.conf":                     "[Manager]\nDefaultEnvironment=\"NO_PROXY=a b\" X=y\n",
				"/usr/lib/systemd/system.conf.d/10-proxy.conf": "[Manager]\nDefaultEnvironment=http_proxy=http://x\n",
				"/etc/systemd/system.conf.d/10-proxy.conf":     "-> /dev/null",
			},
			[]string{"/etc/systemd/system.conf NO_PROXY"},
		},
		"C09: an environment file after ours wins, one before loses": {
			map[string]string{
				etc + "10-a.conf": "[Service]\nEnvironmentFile=-/etc/default/a\n",
				etc + "zzz.conf":  "[Service]\nEnvironmentFile=/etc/default/b\n",
				"/etc/default/a":  "HTTP_PROXY=http://a\nOTHER=x\n",
				"/etc/default/b":  "NO_PROXY=b\nno_proxy=b\n",
			},
			[]string{"/etc/default/a HTTP_PROXY", "/etc/default/b wins NO_PROXY,no_proxy"},
		},
		"an environment file that is not there": {
			map[string]string{etc + "zzz.conf": "[Service]\nEnvironmentFile=-/etc/default/b\n"},
			nil,
		},
		"an environment file that speaks of nothing ours": {
			map[string]string{etc + "zzz.conf": "[Service]\nEnvironmentFile=-/etc/default/b\n", "/etc/default/b": "FOO=1\n"},
			nil,
		},
		"file names order, not directories; the nearest of a name is read": {
			map[string]string{
				"/usr/lib/systemd/system/containerd.service.d/50-x.conf": plain,
				"/run/systemd/system/containerd.service.d/50-x.conf":     "[Service]\nEnvironment=HTTP_PROXY=http://run\n",
				"/usr/lib/systemd/system/service.d/10-all.conf":          plain,
				"/etc/systemd/system/service.d/50-x.conf":                plain,
			},
			[]string{"/usr/lib/systemd/system/service.d/10-all.conf HTTPS_PROXY", "/run/systemd/system/containerd.service.d/50-x.conf HTTP_PROXY"},
		},
		"masked by a link to /dev/null, by an empty file; dotfiles and other names": {
			map[string]string{
				"/usr/lib/systemd/system/containerd.service.d/a.conf": plain, etc + "a.conf": "-> /dev/null",
				"/usr/lib/systemd/system/containerd.service.d/b.conf": plain, etc + "b.conf": "",
				etc + ".hidden.conf": plain, etc + "dangling.conf": "-> /none", etc + "dir.conf/": "",
			},
			nil,
		},
		"a linked drop-in is read": {
			map[string]string{etc + "a.conf": "-> /opt/a", "/opt/a": plain},
			[]string{etc + "a.conf HTTPS_PROXY"},
		},
		"ours is not somebody else's": {
			map[string]string{
				etc + DropInName: "[Service]\nEnvironmentFile=-" + envPath(unit) + "\nUnsetEnvironment=HTTP_PROXY\n",
				envPath(unit):    "HTTPS_PROXY=http://ours\n",
			},
			nil,
		},
		"a nearer file of our name keeps ours from being read": {
			map[string]string{"/etc/systemd/system.control/containerd.service.d/" + DropInName: "[Service]\n"},
			[]string{"/etc/systemd/system.control/containerd.service.d/" + DropInName + " wins !systemd reads it instead"},
		},
		"a farther file of our name is masked by ours": {
			map[string]string{"/usr/lib/systemd/system/containerd.service.d/" + DropInName: plain},
			nil,
		},
		"a later empty EnvironmentFile= drops ours": {
			map[string]string{etc + "zzz.conf": "[Service]\nEnvironmentFile=\n"},
			[]string{etc + "zzz.conf wins !empty EnvironmentFile="},
		},
		"an earlier empty EnvironmentFile= does not": {
			map[string]string{etc + "10-a.conf": "[Service]\nEnvironmentFile=\n"},
			nil,
		},
		"a later empty UnsetEnvironment= drops ours": {
			map[string]string{etc + "zzz.conf": "[Service]\nUnsetEnvironment=\n"},
			[]string{etc + "zzz.conf wins !empty UnsetEnvironment="},
		},
		"UnsetEnvironment= wins wherever it stands": {
			map[string]string{etc + "10-a.conf": "[Service]\nUnsetEnvironment=NO_PROXY FOO\n"},
			[]string{etc + "10-a.conf wins NO_PROXY !it unsets"},
		},
		"C11: all pairs in one quoted string": {
			map[string]string{etc + "a.conf": "[Service]\nEnvironment=\"HTTP_PROXY=http://x HTTPS_PROXY=http://x\"\n"},
			[]string{etc + "a.conf HTTP_PROXY !several NAME=value pairs"},
		},
		"C11: curly quotes": {
			map[string]string{etc + "a.conf": "[Service]\nEnvironment=\u201cHTTP_PROXY=http://x\u201d\n"},
			[]string{etc + "a.conf !straight quotes"},
		},
		"C11: a percent sign that drops the assignment": {
			map[string]string{etc + "a.conf": "[Service]\nEnvironment=HTTP_PROXY=http://u:p%40w@x\n"},
			[]string{etc + "a.conf !%%"},
		},
		"C69: SSL_CERT_FILE": {
			map[string]string{etc + "a.conf": "[Service]\nEnvironment=SSL_CERT_FILE=/x\n"},
			[]string{etc + "a.conf wins SSL_CERT_FILE"},
		},
		"C72: one variable per file": {
			map[string]string{
				etc + "http-proxy.conf":  "[Service]\nEnvironment=HTTP_PROXY=http://x\n",
				etc + "https-proxy.conf": plain,
				etc + "no-proxy.conf":    "[Service]\nEnvironment=NO_PROXY=x\nEnvironment=NO_PROXY=y\n",
			},
			[]string{etc + "http-proxy.conf HTTP_PROXY", etc + "https-proxy.conf HTTPS_PROXY", etc + "no-proxy.conf NO_PROXY"},
		},
		"C75: folders and names that systemd does not read": {
			map[string]string{
				"/etc/systemd/system/containerd.service/http-proxy.conf": plain,
				"/etc/systemd/system/containerd.d/http-proxy.conf":       plain,
				etc + "http-proxy.conf.bak":                              plain,
				etc + "README":                                           "nothing to do with it",
			},
			[]string{
				"/etc/systemd/system/containerd.service/http-proxy.conf !must be containerd.service.d",
				"/etc/systemd/system/containerd.d/http-proxy.conf !must be containerd.service.d",
				etc + "http-proxy.conf.bak !must end in .conf",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := observeOthers(tree(t, test.files), UnitRef{Unit: unit})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != len(test.want) {
				t.Fatalf("got %d files: %+v, want %q", len(list), list, test.want)
			}
			for i, f := range list {
				want, problem, _ := strings.Cut(test.want[i], " !")
				got := f.Path
				if f.Wins {
					got += " wins"
				}
				if len(f.Names) > 0 {
					got += " " + strings.Join(f.Names, ",")
				}
				if got != want || !strings.Contains(f.Problem, problem) || problem == "" && f.Problem != "" {
					t.Errorf("file %d is %q with problem %q, want %q", i, got, f.Problem, test.want[i])
				}
				if strings.Contains(f.Problem, "http://") {
					t.Errorf("the problem holds a value: %q", f.Problem)
				}
			}
		})
	}
}

func TestDropInDirectories(t *testing.T) {
	dirs := dropInDirectories("foo-bar-baz.service")
	index := func(dir string) int {
		i := slices.Index(dirs, dir)
		if i < 0 {
			t.Fatalf("%q is not among %q", dir, dirs)
		}
		return i
	}
	order := []string{
		"/etc/systemd/system/foo-bar-baz.service.d", "/etc/systemd/system/foo-bar-.service.d", "/etc/systemd/system/foo-.service.d",
		"/usr/lib/systemd/system/foo-bar-baz.service.d", "/etc/systemd/system/service.d", "/usr/lib/systemd/system/service.d",
	}
	for i := range order[1:] {
		if index(order[i]) >= index(order[i+1]) {
			t.Errorf("%q does not come before %q", order[i], order[i+1])
		}
	}
}

func TestOthersWithPrefix(t *testing.T) {
	root := tree(t, map[string]string{
		"/etc/systemd/system/k3s.service":     "[Service]\nEnvironmentFile=-/etc/systemd/system/k3s.service.env\n",
		"/etc/systemd/system/k3s.service.env": "CONTAINERD_HTTPS_PROXY=http://x\nHTTPS_PROXY=http://y\nCONTAINERD_OTHER=z\n",
	})
	list, err := observeOthers(root, UnitRef{Unit: "k3s.service", Runtime: runtimes.Runtime{Prefix: "CONTAINERD_"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(list[0].Names), "[CONTAINERD_HTTPS_PROXY HTTPS_PROXY]"; len(list) != 1 || got != want {
		t.Errorf("C56: names are %s of %d files, want %s", got, len(list), want)
	}
}

func TestUnreadableFileIsNotAbsent(t *testing.T) {
	root := tree(t, map[string]string{"/etc/systemd/system/containerd.service.d/a.conf": "[Service]\nEnvironmentFile=-/etc/default/a\n", "/etc/default/a/": ""})
	if _, err := observeOthers(root, UnitRef{Unit: unit}); err == nil {
		t.Error("an environment file that cannot be read passes for one that is not there")
	}
	layer := observeFiles(root, UnitRef{Unit: unit})
	if layer.Err == nil || layer.Ours != nil {
		t.Errorf("the layer is %+v, want unknown", layer)
	}
}
