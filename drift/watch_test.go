package drift

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/systemd"
)

// watching starts a Watch and takes its first look.
func watching(t *testing.T, config WatchConfig) <-chan Look {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if config.Debounce == 0 {
		config.Debounce = 20 * time.Millisecond
	}
	looks, err := Watch(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		for range looks { // it ends
		}
	})
	expect(t, looks, causeFullPass)
	return looks
}

// expect waits for a look whose cause says this.
func expect(t *testing.T, looks <-chan Look, cause string) {
	t.Helper()
	select {
	case look := <-looks:
		if !strings.Contains(look.Cause, cause) {
			t.Fatalf("the look's cause is %q, want %q", look.Cause, cause)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no look came for %q", cause)
	}
}

// expectNone waits a while for what should not come.
func expectNone(t *testing.T, looks <-chan Look) {
	t.Helper()
	select {
	case look := <-looks:
		t.Fatalf("a look came for %q", look.Cause)
	case <-time.After(200 * time.Millisecond):
	}
}

func TestWatch(t *testing.T) {
	const dir = "/etc/systemd/system/containerd.service.d"
	write := func(name, content string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) { put(t, root, name, content) }
	}
	rename := func(from, to string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) {
			if err := os.Rename(filepath.Join(root, from), filepath.Join(root, to)); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	type step struct {
		do    func(t *testing.T, root string)
		cause string // "" when nothing may come
	}
	tests := map[string]struct {
		files map[string]string
		steps []step
	}{
		"a file is written, edited, moved away and removed": {
			map[string]string{dir + "/a.conf": "1"},
			[]step{
				{write(dir+"/b.conf", "2"), dir + "/b.conf"},
				{write(dir+"/a.conf", "2"), dir + "/a.conf"},
				{rename(dir+"/a.conf", "/etc/a.conf"), dir + "/a.conf"},
				{remove(dir + "/b.conf"), dir + "/b.conf"},
			},
		},
		"C13: a mode is changed": {
			map[string]string{"/etc/proxyward/env/containerd.service.env": "1"},
			[]step{{func(t *testing.T, root string) {
				if err := os.Chmod(filepath.Join(root, envPath(unit)), 0o600); err != nil {
					t.Fatal(err)
				}
			}, envPath(unit)}},
		},
		"the directory is created later, with parents": {
			map[string]string{"/etc/": ""},
			[]step{
				{write(dir+"/a.conf", "1"), "/etc/systemd"},
				{write(dir+"/a.conf", "2"), dir + "/a.conf"},
			},
		},
		"the directory is replaced": {
			map[string]string{dir + "/a.conf": "1", "/etc/systemd/system/new/a.conf": "2"},
			[]step{
				{rename(dir, "/etc/old"), dir},
				{rename("/etc/systemd/system/new", dir), dir},
				{write(dir+"/a.conf", "3"), dir + "/a.conf"},
				{write("/etc/old/a.conf", "4"), ""},
			},
		},
		"the directory is removed and made again": {
			map[string]string{dir + "/a.conf": "1"},
			[]step{
				{remove(dir), dir},
				{write(dir+"/a.conf", "2"), dir},
				{write(dir+"/a.conf", "3"), dir + "/a.conf"},
			},
		},
		"the directory is a link, which is turned elsewhere": {
			map[string]string{"/opt/one/a.conf": "1", "/opt/two/a.conf": "1", dir: "-> /opt/one"},
			[]step{
				{write("/opt/one/a.conf", "2"), "/opt/one/a.conf"},
				{func(t *testing.T, root string) {
					put(t, root, "/etc/systemd/system/link", "-> ../../../opt/two")
					rename("/etc/systemd/system/link", dir)(t, root)
				}, dir},
				{write("/opt/two/a.conf", "2"), "/opt/two/a.conf"},
				{write("/opt/one/a.conf", "3"), ""},
				{rename("/opt/two", "/opt/gone"), "/opt/two"},
			},
		},
		"our file is a link": {
			map[string]string{"/opt/env": "1", "/etc/proxyward/env/containerd.service.env": "-> /opt/env"},
			[]step{{write("/opt/env", "2"), "/opt/env"}, {write("/opt/other", "2"), ""}},
		},
		"neighbours and dotfiles do not matter": {
			map[string]string{dir + "/a.conf": "1", "/etc/proxyward/env/": ""},
			[]step{
				{write("/etc/hosts", "1"), ""},
				{write("/etc/systemd/system/other.service", "1"), ""},
				{write(dir+"/.a.conf.proxyward-tmp", "1"), ""},
				{write("/etc/proxyward/env/kubelet.service.env", "1"), ""},
			},
		},
		"links in a circle": {
			map[string]string{dir: "-> containerd.service.d", "/etc/proxyward/env/": ""},
			[]step{{remove(dir), dir}, {write(dir+"/a.conf", "1"), dir}},
		},
		"a file is where the directory belongs": {
			map[string]string{dir: "a file"},
			[]step{{remove(dir), dir}, {write(dir+"/a.conf", "1"), dir}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := tree(t, test.files)
			dirs, files := WatchPaths(UnitRef{Unit: unit})
			looks := watching(t, WatchConfig{Host: root, Dirs: dirs, Files: files, FullPass: time.Hour})
			for _, s := range test.steps {
				s.do(t, root.Dir())
				if s.cause == "" {
					expectNone(t, looks)
					continue
				}
				expect(t, looks, s.cause)
				drain(looks)
			}
		})
	}
}

// drain takes the looks that follow from the same change.
func drain(looks <-chan Look) {
	for {
		select {
		case <-looks:
		case <-time.After(60 * time.Millisecond):
			return
		}
	}
}

func TestWatchSeesOurOwnAtomicWrites(t *testing.T) {
	root := tree(t, map[string]string{"/etc/": ""})
	dirs, files := WatchPaths(UnitRef{Unit: unit})
	looks := watching(t, WatchConfig{Host: root, Dirs: dirs, Files: files, FullPass: time.Hour})
	for _, content := range []string{"one", "two"} {
		if _, err := root.WriteFile(dropInPath(unit), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		expect(t, looks, "/etc/systemd")
		drain(looks)
	}
}

func TestWatchJoinsBursts(t *testing.T) {
	root := tree(t, map[string]string{dropInPath(unit): "0"})
	dirs, _ := WatchPaths(UnitRef{Unit: unit})
	looks := watching(t, WatchConfig{Host: root, Dirs: dirs, FullPass: time.Hour, Debounce: 100 * time.Millisecond})
	began := time.Now()
	for time.Since(began) < 2*time.Second {
		put(t, root.Dir(), dropInPath(unit), time.Now().String())
		time.Sleep(10 * time.Millisecond)
		select {
		case <-looks: // it comes though there is no quiet
			if took := time.Since(began); took < 50*time.Millisecond {
				t.Errorf("the look came after %v, without waiting for quiet", took)
			}
			return
		default:
		}
	}
	t.Error("no look came as long as things changed")
}

func TestWatchPassesOnSystemdAndFullPasses(t *testing.T) {
	root := tree(t, nil)
	events := make(chan systemd.Event, 1)
	looks := watching(t, WatchConfig{Host: root, Systemd: events, FullPass: 300 * time.Millisecond})
	events <- systemd.Event{Kind: systemd.EventUnit, Unit: unit}
	expect(t, looks, "systemd unit "+unit)
	events <- systemd.Event{Kind: systemd.EventReloaded}
	expect(t, looks, "systemd reloaded")
	close(events)
	expect(t, looks, causeFullPass)
	expect(t, looks, causeFullPass)
}

func TestWatchPathsNamesWhatTheAdapterRead(t *testing.T) {
	ref := UnitRef{Unit: unit, Paths: []string{caFile}}
	ref.Runtime.Config = []string{"/etc/containerd/config.toml"}
	dirs, files := WatchPaths(ref)
	joined := strings.Join(append(dirs, files...), " ")
	for _, want := range []string{
		"/etc/systemd/system/containerd.service.d", "/etc/systemd/system/service.d", "/run/systemd/system/containerd.service.d",
		envPath(unit), caFile, "/etc/containerd/config.toml", "/etc/systemd/system/containerd.service",
	} {
		if !strings.Contains(joined, want) {
			t.Errorf("%q is not watched", want)
		}
	}
}

var _ WatchTree = (*hostfs.Root)(nil)
