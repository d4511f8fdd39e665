// Command build compiles the lab's control plane into its cache folder and
// prints that folder. Progress goes to standard error; when everything is
// there already it says nothing and takes no time.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/proxyward/proxyward/integration/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	dir, err := controlplane.Build(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
