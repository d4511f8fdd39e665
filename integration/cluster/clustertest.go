//go:build linux

package cluster

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/proxyward/proxyward/integration/controlplane"
	"github.com/proxyward/proxyward/integration/lab"
)

// Require skips a test where no cluster can run, with the reason. With CI=true
// in the environment it fails instead: there the control plane has to be built.
// Call it before the lab is brought up.
func Require(t testing.TB) {
	t.Helper()
	lab.Require(t)
	_, err := controlplane.Find()
	if missing := (*controlplane.MissingError)(nil); errors.As(err, &missing) && os.Getenv("CI") != "true" {
		t.Skipf("no cluster here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Start makes a cluster of the lab for a test and removes it when that ends.
// When the test failed, what the API server knows of nodes and pods is printed
// before it goes.
func Start(t testing.TB, l *lab.Lab, cfg Config) *Cluster {
	t.Helper()
	Require(t)
	if cfg.Progress == nil {
		cfg.Progress = t.Output()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c, err := Up(ctx, l, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if t.Failed() {
			c.describe(ctx, t)
		}
		if err := c.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *Cluster) describe(ctx context.Context, t testing.TB) {
	for _, args := range [][]string{
		{"get", "nodes,pods", "--all-namespaces", "-o", "wide"},
		{"get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"},
	} {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		out, err := c.Kubectl(ctx, nil, args...)
		cancel()
		if err != nil {
			t.Log(err)
			continue
		}
		t.Logf("kubectl %q:\n%s", args, out)
	}
}
