//go:build linux

package lab

import (
	"context"
	"os"
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
// becomes the test's. When the test failed, the folder of logs is printed
// line by line before it goes.
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

// testLabName makes a valid lab name of a test's name and the process.
func testLabName(test string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(test) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		}
	}
	name := b.String()
	return name[:min(len(name), 32)]
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
