// Command proxyward-agent is what lives on nodes: the verbs that change or check one host.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/proxyward/proxyward/cmd/internal/verbs"
)

// version is set when the program is linked.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := verbs.App{
		Name:    "proxyward-agent",
		Short:   "Put this node's container runtimes on the corporate proxy, and prove it",
		Version: version, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
	}
	return app.Run(ctx, os.Args[1:], verbs.Bootstrap, verbs.Preflight, verbs.Diff, verbs.Remove, verbs.Deadman, verbs.Version)
}
