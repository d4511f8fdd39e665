//go:build linux

// Command lab brings a lab up and down for people: real nodes, proxies and
// registries on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/integration/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx)
	stop()
	os.Exit(code)
}

func run(ctx context.Context) int {
	err := command().ExecuteContext(ctx)
	return exitCode(ctx, err)
}

// exitCode says on standard error what went wrong, and returns how the program ends. A command that
// was run on a node has spoken for itself, so its own code is handed on without a word.
func exitCode(ctx context.Context, err error) int {
	inside, ran := errors.AsType[*commandError](err)
	switch {
	case err == nil:
		return 0
	case ran:
		return inside.code
	case ctx.Err() != nil:
		// What the user asked for; the details would only be about that.
		fmt.Fprintln(os.Stderr, "lab: interrupted")
		return 130
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
}

// options are the flags that several verbs share.
type options struct{ name, stateDir string }

func command() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "lab",
		Short: "Real nodes, proxies and registries on this machine",
		Long: `lab builds a corporate network on this machine: nodes with a real systemd and
a real containerd, squid open and with a login, and registries of which the
external one can be reached through a proxy only. It needs root and Debian.`,
		Example: `  lab setup                     install packages and build the node root, once
  lab up                        one node and all services
  lab up --nodes 3 --docker     three nodes that run dockerd as well
  lab shell n1                  a shell on a node
  lab status                    addresses, logins, what runs
  lab down                      remove everything`,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&o.name, "name", "lab", "name of the lab; labs of different names run side by side")
	root.PersistentFlags().StringVar(&o.stateDir, "state-dir", lab.DefaultStateDir, "folder that holds the labs' files")
	root.AddCommand(setupCommand(&o), upCommand(&o), downCommand(&o), shellCommand(&o), statusCommand(&o))
	return root
}

// nodeFlags describe the nodes of setup and up.
type nodeFlags struct {
	count        int
	generation   string
	full, docker bool
}

func (f *nodeFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.count, "nodes", 1, "number of nodes, named n1, n2, …")
	cmd.Flags().StringVar(&f.generation, "generation", string(lab.Trixie), "Debian release of the nodes: bookworm, trixie or sid")
	cmd.Flags().BoolVar(&f.full, "full", false, "nodes with Docker, CNI plugins, nftables and iptables installed")
	cmd.Flags().BoolVar(&f.docker, "docker", false, "nodes that run dockerd; implies --full")
}

func (f *nodeFlags) config(o *options) lab.Config {
	cfg := lab.Config{
		Name: o.name, StateDir: o.stateDir, Generation: lab.Generation(f.generation), Progress: os.Stderr, Detach: true,
	}
	for i := range f.count {
		cfg.Nodes = append(cfg.Nodes, lab.NodeSpec{Name: fmt.Sprintf("n%d", i+1), Full: f.full, Docker: f.docker})
	}
	return cfg
}

func setupCommand(o *options) *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use: "setup", Short: "Install packages and build the node root; needed once", Args: cobra.NoArgs,
		Long: `setup installs the Debian packages that the lab needs, builds the root of the
nodes into the user's cache folder, and the lab's helper programs. What is there
already is kept. "lab up" does the same first.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := lab.Setup(cmd.Context(), f.config(o)); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "everything the lab needs is there")
			return err
		},
	}
	f.add(cmd)
	return cmd
}

func upCommand(o *options) *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use: "up", Short: "Bring the lab up and leave it running", Args: cobra.NoArgs,
		Long: `up brings the lab up and leaves it running until "lab down". Interrupted, it
removes what it had made. The canary image proxyward/canary:1 is in the internal
and the external registry then, so that a profile can name it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := lab.Up(cmd.Context(), f.config(o))
			if err != nil {
				return err
			}
			canaries, err := pushCanaries(cmd.Context(), l)
			if err != nil {
				return errors.Join(err, lab.Down(context.WithoutCancel(cmd.Context()), o.name, o.stateDir, os.Stderr))
			}
			if err := printStatus(cmd.OutOrStdout(), l); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nCANARY\n%s\n", strings.Join(canaries, "\n"))
			return err
		},
	}
	f.add(cmd)
	return cmd
}

// pushCanaries gives the internal and the external registry an image that a profile can name, and
// returns the two references.
func pushCanaries(ctx context.Context, l *lab.Lab) ([]string, error) {
	var refs []string
	for _, registry := range []string{lab.Internal, lab.External} {
		image, err := l.PushCanary(ctx, registry, "proxyward/canary", "1")
		if err != nil {
			return nil, fmt.Errorf("pushing the canary to the registry %q: %w", registry, err)
		}
		refs = append(refs, image.Ref)
	}
	return refs, nil
}

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Remove the lab and whatever an interrupted run of it left", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return lab.Down(cmd.Context(), o.name, o.stateDir, os.Stderr)
		},
	}
}
