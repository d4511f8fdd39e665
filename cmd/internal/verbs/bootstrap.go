package verbs

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/cli"
)

// exitUntested is how a verb ends when something that says nothing of the proxy kept it from
// finding out.
const exitUntested = 5

// Bootstrap is the verb `bootstrap`.
func Bootstrap(a *App, c *common) *cobra.Command {
	var in inputs
	var files, prove bool
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Put this host's container runtimes on the proxy, and prove it",
		Long: `bootstrap carries out what diff shows. It asks the proxy and the registries first:
what does not work is refused while nothing has changed. Then it writes the files, has
systemd load them, restarts what runs with another environment, and pulls the canaries
fresh through the runtime. A change that fails its proof is undone.

--files ends after the files: for a unit that is ordered before the runtime's first
start. It waits for nothing, restarts nothing and needs no network.
--prove is for a unit after the runtime's start and before the kubelet's: it mends what
differs by then, restarts what must be, and proves. Neither flag means the same as both.

No API server is needed. A unit that is stopped stays stopped.

Exit codes: 0 done and proven (with --files: written), 1 failed, and the host is as it
was unless the output says otherwise, 2 the profile or what goes with it cannot be
used, 5 done, and something that says nothing of the proxy (a registry that is down, a
unit that does not run) kept it from being proven.`,
		Example: fmt.Sprintf(`  %[1]s bootstrap --profile corp.yaml --credentials creds/
  %[1]s bootstrap --files --profile corp.yaml --credentials creds/    # before containerd.service
  %[1]s bootstrap --prove --profile corp.yaml --credentials creds/    # before kubelet.service
  %[1]s bootstrap --files --profile corp.yaml --host-root /mnt/image  # into a tree`, a.Name),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			input, err := in.input()
			if err != nil {
				return err
			}
			stage := bootstrap.StageProof
			if files && !prove {
				stage = bootstrap.StageFiles
			}
			if err := canProve(input, prove); err != nil {
				return err
			}
			host, err := in.open(cmd.Context())
			if err != nil {
				return err
			}
			defer host.Close()
			if host.Systemd == nil && stage == bootstrap.StageProof {
				return cli.BadInput("there is no systemd below %q, so nothing can be restarted or proven; add --files to write the files only", in.hostRoot)
			}
			progress := c.print.Progress()
			began := time.Now()
			report, err := bootstrap.Run(cmd.Context(), host, bootstrap.Request{Input: input, Stage: stage, Observe: tell(progress)})
			progress.End()
			if err != nil {
				return err
			}
			return c.finish(report, stage, time.Since(began))
		},
	}
	in.addProfile(cmd)
	in.addCredentials(cmd)
	in.addPullSecret(cmd)
	in.addHostRoot(cmd, "/", "directory with the host's tree")
	cmd.Flags().BoolVar(&files, "files", false, "write the files and end")
	cmd.Flags().BoolVar(&prove, "prove", false, "mend, restart what must be, and prove")
	return cmd
}

// canProve refuses a proof that was asked for by name where the profile gives nothing to prove by.
func canProve(input bootstrap.Input, prove bool) error {
	canary := input.Profile.Spec.Canary
	if prove && canary.Internal == nil && canary.External == nil {
		return cli.BadInput("spec.canary: the profile names no canary, so nothing can be proven; name an image of your registry in spec.canary.internal and one from outside in spec.canary.external")
	}
	return nil
}

// finish prints a report and ends with the code that it stands for.
func (c *common) finish(report bootstrap.Report, stage bootstrap.Stage, took time.Duration) error {
	verdict := report.Verdict(stage)
	err := c.print.Print(report, func(w io.Writer, colour cli.Colour) error {
		return writeReport(w, colour, report, sentence(colour, report, stage, took))
	})
	switch {
	case err != nil:
		return err
	case verdict == bootstrap.VerdictGood:
		return nil
	case verdict == bootstrap.VerdictUntested:
		return &cli.ExitError{Code: exitUntested}
	default:
		return &cli.ExitError{Code: cli.ExitFailure}
	}
}

// sentence says in one line how it ended.
func sentence(colour cli.Colour, r bootstrap.Report, stage bootstrap.Stage, took time.Duration) string {
	in := " in " + took.Round(100*time.Millisecond).String()
	switch r.Verdict(stage) {
	case bootstrap.VerdictGood:
		switch {
		case stage == bootstrap.StageFiles:
			return colour.Green("files in place") + in + "; nothing was restarted, and nothing is proven yet"
		case len(r.Canaries) > 0:
			return colour.Green("done and proven") + in
		default:
			return colour.Green("done") + in + "; not proven, since no canary was pulled"
		}
	case bootstrap.VerdictUntested:
		return colour.Yellow("done, and could not be proven") + in
	}
	switch r.Outcome {
	case apply.ProbeFailed, apply.Refused:
		return colour.Red("refused") + in + "; nothing was changed and nothing was restarted"
	case apply.RolledBack:
		return colour.Red("failed") + in + "; the change was undone, and the host is as it was"
	case apply.UndoFailed:
		return colour.Red("failed") + in + ", and so did putting it back; the next run tries again"
	case apply.NotUndone:
		return colour.Red("failed") + in + "; not undone, since the previous password is dead"
	case apply.Interrupted:
		return colour.Red("interrupted") + in + "; the next run finishes or undoes it"
	default:
		return colour.Red("not as it should be") + in + "; see what was found above"
	}
}

// tell turns the steps of a transaction into progress.
func tell(progress *cli.Progress) apply.Observer {
	words := map[apply.Step]string{
		apply.StepAsk:         "asking the proxy and the registries",
		apply.StepBaseline:    "pulling the canaries with the old environment",
		apply.StepTry:         "trying the dead-man",
		apply.StepWrite:       "writing the files",
		apply.StepReload:      "reloading systemd",
		apply.StepRestart:     "restarting",
		apply.StepCheck:       "asking the daemon",
		apply.StepProve:       "pulling the canaries",
		apply.StepUndoWrite:   "putting the previous files back",
		apply.StepUndoReload:  "reloading systemd again",
		apply.StepUndoRestart: "restarting again",
		apply.StepUndoProve:   "pulling the canaries after the undo",
	}
	return func(e apply.Event) {
		word, known := words[e.Step]
		if !known || e.Ended {
			return
		}
		if e.Unit != "" {
			word += " " + e.Unit
		}
		if e.Note != "" {
			word += " (" + e.Note + ")"
		}
		progress.Step(word)
	}
}
