package controlplane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestVersionsAreThePinnedOnes holds this package's constants and list to the
// module that the programs are compiled from.
func TestVersionsAreThePinnedOnes(t *testing.T) {
	data, err := os.ReadFile("tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	gomod := string(data)
	for module, want := range map[string]string{
		"k8s.io/kubernetes": KubernetesVersion, "go.etcd.io/etcd/server/v3": EtcdVersion, "sigs.k8s.io/kwok": KwokVersion,
	} {
		if !regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(module+" "+want) + `\b`).MatchString(gomod) {
			t.Errorf("tools/go.mod does not require %s %s", module, want)
		}
	}
	staging := strings.Replace(KubernetesVersion, "v1.", "v0.", 1)
	replaced := regexp.MustCompile(`(?m)^\t(\S+) => (\S+) (\S+)$`).FindAllStringSubmatch(gomod, -1)
	if len(replaced) < 30 {
		t.Errorf("tools/go.mod replaces %d staging modules, want 30 or more", len(replaced))
	}
	for _, m := range replaced {
		if m[1] != m[2] || m[3] != staging {
			t.Errorf("tools/go.mod replaces %s by %s %s, want itself at %s", m[1], m[2], m[3], staging)
		}
	}
	var pkgs []string
	for _, b := range binaries() {
		pkgs = append(pkgs, b.pkg)
	}
	slices.Sort(pkgs)
	tools := regexp.MustCompile(`(?s)\ntool \((.*?)\)`).FindStringSubmatch(gomod)
	if tools == nil {
		t.Fatal("tools/go.mod has no tool block")
	}
	if want := strings.Fields(tools[1]); !slices.Equal(pkgs, want) {
		t.Errorf("Build compiles %q, tools/go.mod names %q", pkgs, want)
	}
}

func TestFindNamesWhatIsMissing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, b := range binaries()[1:] {
		if err := os.WriteFile(filepath.Join(dir, b.name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// What an interrupted build left is not the program.
	if err := os.WriteFile(filepath.Join(dir, ".etcd.partial"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	var missing *MissingError
	if _, err := Find(); !errors.As(err, &missing) || !slices.Equal(missing.Names, []string{"etcd"}) {
		t.Fatalf("Find gave %v, want that only etcd is missing", err)
	}
	if !strings.Contains(missing.Error(), BuildCommand) {
		t.Errorf("the error does not say how to build: %v", missing)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(); err != nil || got != dir {
		t.Errorf("Find gave %q, %v; want %q", got, err, dir)
	}
	var out bytes.Buffer
	if got, err := Build(t.Context(), &out); err != nil || got != dir || out.Len() != 0 {
		t.Errorf("Build of a full folder gave %q, %v and said %q; want %q in silence", got, err, out.String(), dir)
	}
}

// module writes a Go module with one program into a new folder.
func module(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module lab.example/hello\n\ngo 1.26.0\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCompileStampsTheVersion(t *testing.T) {
	tools, dir := module(t, "package main\n\nvar version = \"none\"\n\nfunc main() { print(version) }\n"), t.TempDir()
	b := binary{name: "hello", pkg: "lab.example/hello", stamp: "main.version=v9.8.7"}
	if err := compile(t.Context(), b, tools, dir, time.Now(), t.Output()); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(filepath.Join(dir, "hello")).CombinedOutput()
	if err != nil || string(got) != "v9.8.7" {
		t.Errorf("the program says %q, %v; want v9.8.7", got, err)
	}
}

func TestCompileFailureLeavesNothing(t *testing.T) {
	tools, dir := module(t, "package main\n\nfunc main() { undefined() }\n"), t.TempDir()
	err := compile(t.Context(), binary{name: "hello", pkg: "lab.example/hello"}, tools, dir, time.Now(), t.Output())
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("compile gave %v, want what the compiler said", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("a failed compile left %v, %v", left, err)
	}
}

func TestLockKeepsASecondBuildWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var out bytes.Buffer
	unlock, err := lock(t.Context(), path, &out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, &out); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock gave %v, want that it waits", err)
	}
	if !strings.Contains(out.String(), path) {
		t.Errorf("the waiting build said %q, want the lock's path", out.String())
	}
	unlock()
	again, err := lock(t.Context(), path, &out)
	if err != nil {
		t.Fatalf("locking after the first gave it back: %v", err)
	}
	again()
}
