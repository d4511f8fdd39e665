//go:build linux

// Command demo shows on a real node what Proxyward promises: proof by pulls whose route is seen, a
// dead proxy refused before anything changes, a change that fails its proof undone by itself, and a
// change whose program was killed ended by the dead-man.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/integration/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "proxyward-demo-")
	if err != nil {
		return fmt.Errorf("making a place for the programs: %w", err)
	}
	defer os.RemoveAll(dir)
	fmt.Println("building the programs, and a network with a node, proxies and registries")
	if err := program.Build(ctx, dir); err != nil {
		return err
	}
	l, err := lab.Up(ctx, lab.Config{Name: fmt.Sprintf("demo-%d", os.Getpid()), Nodes: []lab.NodeSpec{{Name: "n1"}}, Progress: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		// Also after an interruption, which has ended ctx.
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, l.Down(down))
	}()
	d := &demo{lab: l, node: l.Node("n1")}
	if err := program.Install(ctx, d.node, dir); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	for _, act := range []func(context.Context) error{d.bootstrap, d.unchanged, d.dead, d.oneSided, d.killed, d.remove} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return d.summary(os.Stdout, time.Since(began))
}
