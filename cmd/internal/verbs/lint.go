package verbs

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// lintResult is what `lint` prints.
type lintResult struct {
	Profile  string    `json:"profile"`
	Revision string    `json:"revision"`
	Entries  int       `json:"noProxyEntries"`
	Findings []finding `json:"findings"`
}

// finding is a proxyenv.LintFinding, or a note of Resolve, as it is printed.
type finding struct {
	Severity proxyenv.Severity `json:"severity"`
	Path     string            `json:"path"`
	Value    string            `json:"value,omitempty"`
	// Clients that it concerns; all when there are none.
	Clients []proxyenv.Client `json:"clients,omitempty"`
	Problem string            `json:"problem"`
	Fix     string            `json:"fix,omitempty"`
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
goes direct. What concerns other clients than Go's, which the runtimes are, is marked.

Exit codes: 0 usable (with or without findings), 1 warnings and --strict, 2 not usable.`,
		Example: fmt.Sprintf(`  %[1]s lint --profile corp.yaml
  %[1]s lint --profile corp.yaml --strict -o json   # in a pipeline`, a.Name),
		Args: noArguments,
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
				Entries: len(revision.NoProxy), Findings: findings(proxyenv.Lint(g.profile), notes),
			}
			err = c.print.Print(result, func(w io.Writer, colour cli.Colour) error { return writeLint(w, colour, result) })
			if err != nil {
				return err
			}
			if strict && result.warns() {
				return &cli.ExitError{Code: cli.ExitFailure}
			}
			c.print.Next(fmt.Sprintf("%s render --profile %s shows the files it gives", a.Name, in.profile))
			return nil
		},
	}
	in.addProfile(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "end with 1 when there is a warning")
	return cmd
}

// findings puts both kinds together, each thing once: a field that a finding names is not noted
// again.
func findings(linted []proxyenv.LintFinding, notes []proxyenv.Note) []finding {
	out := []finding{}
	for _, f := range linted {
		out = append(out, finding{Severity: f.Severity, Path: f.Path, Value: f.Value, Clients: f.Clients, Problem: f.Problem, Fix: f.Fix})
	}
	for _, n := range notes {
		if !slices.ContainsFunc(linted, func(f proxyenv.LintFinding) bool { return f.Path == n.Path }) {
			out = append(out, finding{Severity: proxyenv.SeverityInfo, Path: n.Path, Value: n.Value, Problem: n.Message})
		}
	}
	return out
}

func (r lintResult) warns() bool {
	return slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Severity != proxyenv.SeverityInfo })
}

func writeLint(w io.Writer, colour cli.Colour, r lintResult) error {
	for _, f := range r.Findings {
		paint := colour.Yellow
		switch f.Severity {
		case proxyenv.SeverityError:
			paint = colour.Red
		case proxyenv.SeverityInfo:
			paint = colour.Dim
		}
		at := f.Path
		if f.Value != "" {
			at += fmt.Sprintf(" %q", f.Value)
		}
		if len(f.Clients) > 0 {
			at += fmt.Sprintf(" %v", f.Clients)
		}
		text := f.Problem
		if f.Fix != "" {
			text += "; " + f.Fix
		}
		if _, err := fmt.Fprintf(w, "%s %s\n        %s\n", paint(fmt.Sprintf("%-7s", strings.ToLower(string(f.Severity)))), at, text); err != nil {
			return err
		}
	}
	verdict := colour.Green("usable")
	if r.warns() {
		verdict = colour.Yellow("usable, with warnings")
	}
	_, err := fmt.Fprintf(w, "profile %s: %s (revision %s, %d NO_PROXY entries)\n", r.Profile, verdict, r.Revision, r.Entries)
	return err
}
