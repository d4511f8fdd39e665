package verbs

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// lintResult is what `lint` prints.
type lintResult struct {
	Profile  string `json:"profile"`
	Revision string `json:"revision"`
	Entries  int    `json:"noProxyEntries"`
	Notes    []note `json:"notes"`
}

// note is a proxyenv.Note as it is printed.
type note struct {
	Path    string `json:"path"`
	Value   string `json:"value,omitempty"`
	Message string `json:"message"`
}

func notesOf(notes []proxyenv.Note) []note {
	out := make([]note, len(notes))
	for i, n := range notes {
		out[i] = note{Path: n.Path, Value: n.Value, Message: n.Message}
	}
	return out
}

// Lint is the verb `lint`.
func Lint(a *App, c *common) *cobra.Command {
	var in inputs
	var strict bool
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Say what is wrong or doubtful in a profile",
		Long: `lint reads a profile as strictly as an API server would, resolves it, and names what
cannot be used, with what to write instead; then what can be used and will hardly do
what was meant: an entry that no client matches, a CIDR beside a name, a scheme that
goes direct.

Exit codes: 0 usable (with or without notes), 1 notes and --strict, 2 not usable.`,
		Example: fmt.Sprintf(`  %[1]s lint --profile corp.yaml
  %[1]s lint --profile corp.yaml --strict -o json   # in a pipeline`, a.Name),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			g, err := in.load()
			if err != nil {
				return err
			}
			revision, notes, err := g.resolve(nil)
			if err != nil {
				return err
			}
			result := lintResult{
				Profile: revision.Profile, Revision: proxyenv.RevisionName(revision),
				Entries: len(revision.NoProxy), Notes: notesOf(notes),
			}
			err = c.print.Print(result, func(w io.Writer, colour cli.Colour) error { return writeLint(w, colour, result) })
			if err == nil && strict && len(notes) > 0 {
				err = &cli.ExitError{Code: cli.ExitFailure}
			}
			if err == nil {
				c.print.Next(fmt.Sprintf("%s render --profile %s shows the files it gives", a.Name, in.profile))
			}
			return err
		},
	}
	in.addProfile(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "end with 1 when there is anything to note")
	return cmd
}

func writeLint(w io.Writer, colour cli.Colour, r lintResult) error {
	for _, n := range r.Notes {
		at := n.Path
		if n.Value != "" {
			at += fmt.Sprintf(" %q", n.Value)
		}
		if _, err := fmt.Fprintf(w, "%s %s\n        %s\n", colour.Yellow("note:  "), at, n.Message); err != nil {
			return err
		}
	}
	verdict := colour.Green("usable")
	if len(r.Notes) > 0 {
		verdict = colour.Yellow(fmt.Sprintf("usable, with %d to look at", len(r.Notes)))
	}
	_, err := fmt.Fprintf(w, "profile %s: %s (revision %s, %d NO_PROXY entries)\n", r.Profile, verdict, r.Revision, r.Entries)
	return err
}
