package verbs

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/node"
)

// deadmanResult is what `deadman` prints.
type deadmanResult struct {
	Outcome apply.Outcome `json:"outcome"`
	Attempt string        `json:"attempt,omitempty"`
	// Error is why the change was undone, UndoError what failed in that.
	Error     string   `json:"error,omitempty"`
	UndoError string   `json:"undoError,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// Deadman is the verb `deadman`, which systemd runs while a change is under way.
func Deadman(a *App, c *common) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "deadman",
		Short: "Undo a change that nobody finishes",
		Long: `deadman is what the units proxyward-deadman.service and .timer run; they exist while a
change is under way and are removed with its end. It waits for whoever is still at work,
then brings an unfinished change back to the old state and removes itself. Where nothing
is unfinished it changes nothing, so a person may run it too.

Exit codes: 0 nothing is left unfinished, 1 it could not be undone, and the next run of
the timer tries again, 2 the arguments are wrong.`,
		Example: fmt.Sprintf("  %[1]s deadman\n  %[1]s deadman --wait 5m", a.Name),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, err := node.Open(cmd.Context(), "/")
			if err != nil {
				return err
			}
			defer host.Close()
			applier, err := host.Applier("dead-man", nil)
			if err != nil {
				return err
			}
			r := applier.RunDeadman(cmd.Context(), wait)
			result := deadmanResult{Outcome: r.Outcome, Attempt: r.Attempt, Error: text(r.Err), UndoError: text(r.UndoErr), Notes: r.Notes}
			err = c.print.Print(result, func(w io.Writer, _ cli.Colour) error { return result.write(w) })
			if err == nil && !finished(r) {
				err = &cli.ExitError{Code: cli.ExitFailure}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long to wait for a process that is still making or undoing the change")
	return cmd
}

// finished says that no change is left unfinished.
func finished(r apply.Result) bool {
	switch r.Outcome {
	case apply.Unchanged:
		return r.Err == nil
	case apply.Done, apply.RolledBack, apply.Interrupted, apply.Inconclusive, apply.NotUndone:
		return true
	}
	return false
}

func (r deadmanResult) write(w io.Writer) error {
	lines := []string{"outcome: " + string(r.Outcome)}
	if r.Attempt != "" {
		lines[0] += " of " + r.Attempt
	}
	for _, line := range []struct{ title, text string }{{"because: ", r.Error}, {"failed: ", r.UndoError}} {
		if line.text != "" {
			lines = append(lines, line.title+line.text)
		}
	}
	for _, n := range r.Notes {
		lines = append(lines, "note: "+n)
	}
	var errs []error
	for _, line := range lines {
		_, err := fmt.Fprintln(w, line)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// text of an error, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
