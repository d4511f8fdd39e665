package runtimetest

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/runtimes"
)

// Options of a run.
type Options struct {
	// Update writes the answers anew instead of comparing with them.
	Update bool
}

// Run holds an adapter to the rules, on each sample tree below dir. There must be one at least.
func Run(t *testing.T, a runtimes.Adapter, dir string, opts Options) {
	t.Helper()
	checkNames(t, a)
	trees := sampleTrees(t, dir)
	if len(trees) == 0 {
		t.Fatalf("there is no sample tree below %s; an adapter needs one at least", dir)
	}
	t.Run("absent", func(t *testing.T) { absent(t, a) })
	t.Run("bare", func(t *testing.T) { bare(t, a) })
	for _, tree := range trees {
		t.Run(filepath.Base(tree), func(t *testing.T) {
			host := open(t, tree)
			found := detect(t, host, a)
			checkAnswer(t, tree, answers(found), opts)
			for _, f := range found {
				if f.Refused == "" {
					checkRuntime(t, host, a, f)
				}
			}
		})
	}
}

func checkNames(t *testing.T, a runtimes.Adapter) {
	t.Helper()
	if a.Target() == "" || len(a.Units()) == 0 {
		t.Fatalf("the adapter of %q has no target or no unit", a.Target())
	}
	for _, u := range a.Units() {
		if !strings.HasSuffix(u, ".service") {
			t.Errorf("unit %q has no suffix", u)
		}
	}
	listed := slices.ContainsFunc(runtimes.All(), func(b runtimes.Adapter) bool { return b.Target() == a.Target() })
	if !listed {
		t.Errorf("%s is not in runtimes.All", a.Target())
	}
}

// absent: a host without the daemon is an answer and no error, and inspecting it is one.
func absent(t *testing.T, a runtimes.Adapter) {
	host := open(t, t.TempDir())
	if found := detect(t, host, a); len(found) != 0 {
		t.Errorf("found %+v on an empty host", found)
	}
	if _, err := a.Inspect(host, a.Units()[0]); err == nil || !strings.Contains(err.Error(), a.Units()[0]) {
		t.Errorf("inspecting a unit that is not there: %v, want an error that names it", err)
	}
}

// bare: a daemon without any configuration has defaults; each of its unit names is found.
func bare(t *testing.T, a runtimes.Adapter) {
	for _, unit := range a.Units() {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "usr/lib/systemd/system", unit), "[Service]\nExecStart=/usr/bin/daemon\n")
		host := open(t, dir)
		found := detect(t, host, a)
		if len(found) != 1 || found[0].Unit != unit || found[0].Refused != "" {
			t.Fatalf("found %+v, want %s", found, unit)
		}
		checkRuntime(t, host, a, found[0])
		link := filepath.Join(dir, "etc/systemd/system", unit)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/null", link); err != nil {
			t.Fatal(err)
		}
		if found := detect(t, host, a); len(found) != 1 || !strings.Contains(found[0].Refused, "masked") {
			t.Errorf("a masked %s: found %+v, want it refused", unit, found)
		}
	}
}

func checkRuntime(t *testing.T, host runtimes.HostFS, a runtimes.Adapter, f runtimes.Found) {
	t.Helper()
	r := f.Runtime
	if r.Target != a.Target() || r.Unit != f.Unit {
		t.Errorf("the answer is for %s %s, want %s %s", r.Target, r.Unit, a.Target(), f.Unit)
	}
	if (r.API == runtimes.PullNone) != (r.Socket == "") {
		t.Errorf("API %q with socket %q", r.API, r.Socket)
	}
	if r.Socket != "" && !strings.HasPrefix(r.Socket, "/") {
		t.Errorf("the socket %q is not an absolute path", r.Socket)
	}
	if r.Restart.Why == "" {
		t.Error("nothing says why a restart has the effect that it has")
	}
	for _, file := range r.Config {
		if _, err := host.Stat(file); err != nil {
			t.Errorf("the configuration names a file that is not there: %v", err)
		}
	}
	for _, list := range r.Hosts {
		if list.Registry == "" || list.File == "" {
			t.Errorf("a list without a registry or a file: %+v", list)
		}
		for _, h := range append(slices.Clone(list.Hosts), list.Resolvers...) {
			if u, err := url.Parse(h); err != nil || u.Host == "" || u.Scheme == "" || u.User != nil {
				t.Errorf("%s: %q is not scheme://host[:port][/path]", list.Registry, h)
			}
		}
	}
	again, err := a.Inspect(host, f.Unit)
	if err != nil || marshal(t, again) != marshal(t, r) {
		t.Errorf("a second look gives %+v (%v), want %+v", again, err, r)
	}
}

// answer is what a sample tree's answer file holds of one daemon.
type answer struct {
	Unit    string
	Refused string            `json:",omitempty"`
	Runtime *runtimes.Runtime `json:",omitempty"`
}

func answers(found []runtimes.Found) []answer {
	out := []answer{}
	for _, f := range found {
		a := answer{Unit: f.Unit, Refused: f.Refused}
		if f.Refused == "" {
			a.Runtime = &f.Runtime
		}
		out = append(out, a)
	}
	return out
}

func checkAnswer(t *testing.T, tree string, got []answer, opts Options) {
	t.Helper()
	file, text := tree+".want.json", marshal(t, got)
	if opts.Update {
		write(t, file, text)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", file, text)
	}
}

func detect(t *testing.T, host runtimes.HostFS, a runtimes.Adapter) []runtimes.Found {
	t.Helper()
	found, err := runtimes.Detect(host, a.Target())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func sampleTrees(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var trees []string
	for _, e := range entries {
		if e.IsDir() {
			trees = append(trees, filepath.Join(dir, e.Name()))
		}
	}
	return trees
}

func open(t *testing.T, dir string) runtimes.HostFS {
	t.Helper()
	root, err := hostfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// Folder is where the sample trees of a target are, below a folder of such folders.
func Folder(dir string, target v1alpha1.Target) string {
	return filepath.Join(dir, strings.ToLower(string(target)))
}
