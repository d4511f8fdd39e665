// Command proxyward is what people run: it has every verb.
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
		Name:    "proxyward",
		Short:   "Put container runtimes on the corporate proxy, and prove it",
		Version: version, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
	}
	return app.Run(ctx, os.Args[1:], verbs.Render, verbs.Lint, verbs.Explain, verbs.Diff, verbs.Preflight, verbs.Bootstrap, verbs.Remove, verbs.Deadman, verbs.Version)
}
