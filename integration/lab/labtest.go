//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Require skips a test where the lab cannot run, with the reason. With CI=true
// in the environment it fails instead: there the lab has to run.
func Require(t testing.TB) {
	t.Helper()
	err := checkHost()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("the lab must run where CI=true: %v", err)
	}
	t.Skipf("no lab here: %v", err)
}

// Start brings a lab up for a test and removes it when that ends. An empty name
// becomes one made of the test's and the process. When the test failed, the
// journals of the nodes' runtimes are logged before they go.
func Start(t testing.TB, cfg Config) *Lab {
	t.Helper()
	Require(t)
	if cfg.Name == "" {
		cfg.Name = testLabName(t.Name())
	}
	if cfg.Progress == nil {
		cfg.Progress = t.Output()
	}
	// The first start on a machine installs packages and builds a root.
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	l, err := Up(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.printLogs(t)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

// testLabName makes a valid lab name of a test's name and of the process, so
// that the same test can run twice beside itself.
func testLabName(test string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(test) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		}
	}
	suffix := fmt.Sprintf("-%d", os.Getpid())
	name := b.String()
	return name[:min(len(name), 32-len(suffix))] + suffix
}

func (l *Lab) printLogs(t testing.TB) {
	for _, n := range l.Nodes() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		text, err := n.Run(ctx, "journalctl", "--no-pager", "--lines=60", "--unit=containerd")
		cancel()
		if err != nil {
			t.Logf("no journal of node %s: %v", n.Name, err)
			continue
		}
		t.Logf("containerd on node %s:\n%s", n.Name, text)
	}
}

// GenerationsUnderTest are the generations named in the variable NODES, as words
// or "all"; only [Trixie] when it is empty.
func GenerationsUnderTest(t testing.TB) []Generation {
	t.Helper()
	words := strings.Fields(os.Getenv("NODES"))
	switch {
	case len(words) == 0:
		return []Generation{Trixie}
	case len(words) == 1 && words[0] == "all":
		return generations()
	}
	var list []Generation
	for _, w := range words {
		if !slices.Contains(generations(), Generation(w)) {
			t.Fatalf("NODES names %q: want all, or some of %v", w, generations())
		}
		list = append(list, Generation(w))
	}
	return list
}
