//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/integration/lab"
)

// open attaches to the lab that the flags name.
func (o *options) open() (*lab.Lab, error) {
	l, err := lab.Attach(o.name, o.stateDir, os.Stderr)
	if err != nil {
		return nil, err
	}
	if l != nil {
		return l, nil
	}
	others, err := lab.List(o.stateDir)
	if err != nil {
		return nil, err
	}
	hint := "bring it up with `lab up`"
	if len(others) > 0 {
		hint = "there is " + strings.Join(others, ", ") + ": choose one with --name"
	}
	return nil, fmt.Errorf("looking for lab %q: it is not up: %s", o.name, hint)
}

// commandError is how a command on a node ended that did not end with 0.
type commandError struct{ code int }

// Error implements error.
func (e *commandError) Error() string {
	return fmt.Sprintf("running the command on the node: it ended with exit code %d", e.code)
}

func shellCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "shell NODE [-- COMMAND…]", Short: "Open a shell on a node, or run a command there", Args: cobra.MinimumNArgs(1),
		Example: `  lab shell n1
  lab shell n1 -- systemctl status containerd`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := o.open()
			if err != nil {
				return err
			}
			n := l.Node(args[0])
			if n == nil {
				var names []string
				for _, n := range l.Nodes() {
					names = append(names, n.Name)
				}
				return fmt.Errorf("looking for node %q: the lab has %s", args[0], strings.Join(names, ", "))
			}
			argv := args[1:]
			if len(argv) == 0 {
				argv = []string{"bash", "-l"}
			}
			shell := n.Command(cmd.Context(), argv...)
			// A process group of its own could not read from the terminal.
			shell.SysProcAttr, shell.Cancel = nil, nil
			shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, os.Stdout, os.Stderr
			shell.Env = append(shell.Env, "TERM="+os.Getenv("TERM"))
			err = shell.Run()
			exit, ok := errors.AsType[*exec.ExitError](err)
			switch {
			case !ok || !exit.Exited():
				return err
			case len(args) == 1:
				return nil // how the last command typed in ended is no failure of ours
			default:
				return &commandError{code: exit.ExitCode()}
			}
		},
	}
	return cmd
}

func statusCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show addresses, logins and what runs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := o.open()
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), l)
		},
	}
}

func printStatus(out io.Writer, l *lab.Lab) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "lab %s\t%s\t\n", l.Name(), l.Dir())
	fmt.Fprintln(w, "\nNODE\tADDRESS\tRELEASE\t")
	for _, n := range l.Nodes() {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", n.Name, n.IP, n.Spec.Generation)
	}
	fmt.Fprintln(w, "\nPROXY\tADDRESS\tURL\tLOGIN\t")
	for _, name := range []string{lab.Open, lab.Auth} {
		p := l.Proxy(name)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", name, p.Addr, p.URL(), login(p.User, p.Password))
	}
	fmt.Fprintln(w, "\nREGISTRY\tADDRESS\tHOST\tLOGIN\t")
	for _, name := range lab.Registries() {
		r := l.Registry(name)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", name, r.Addr, r.Host, login(r.User, r.Password))
	}
	services := l.Services()
	var dead []string
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if !services[name] {
			dead = append(dead, name)
		}
	}
	if len(dead) > 0 {
		fmt.Fprintf(w, "\nnot running\t%s\t\n", strings.Join(dead, ", "))
	}
	return w.Flush()
}

func login(user, password string) string {
	if user == "" {
		return "-"
	}
	// Made up by the lab, valid in it only: to be shown.
	return user + " " + password
}
