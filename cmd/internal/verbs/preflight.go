package verbs

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/bootstrap/preflight"
	"github.com/proxyward/proxyward/internal/cli"
	"github.com/proxyward/proxyward/internal/node"
)

// How `preflight` ends where a host is not ready. What could not be tested is exitUntested.
const (
	exitBroken          = 3
	exitBreaksAtRestart = 4
)

// maxValue is how much of a variable's value the text shows, in characters.
const maxValue = 60

// Preflight is the verb `preflight`.
func Preflight(a *App, c *common) *cobra.Command {
	var in inputs
	var details bool
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check whether this host is ready for a profile",
		Long: `preflight makes every check that a host, its proxy and its registries can be put to
without changing anything: the environment of each unit in four layers, which way each
host goes, the proxy (name, connection, answer, interception of TLS), the registries
walked to a layer, direct ways, room to write, what a restart does, what others left.

Each check has an ID, a verdict, what was seen and what to do; the IDs are explained at
` + preflight.Docs("") + `
-o json prints all of it, in the form of docs/spec/preflight.schema.json.

With --host-root the files are those of that tree; the network is asked from where the
program runs, and its own store of certificate authorities is used.

Exit codes: 0 ready (warnings included), 1 failed to check, 2 the profile or what goes
with it cannot be used, 3 broken now, 4 right now and broken by the next restart, 5
nothing is known to be broken, and something could not be tested.`,
		Example: fmt.Sprintf(`  %[1]s preflight --profile corp.yaml --credentials creds/
  %[1]s preflight --profile corp.yaml --credentials creds/ --details
  %[1]s preflight --profile corp.yaml -o json | jq -r '.checks[] | select(.verdict == "fail") | .id + " " + .fix'`, a.Name),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			input, err := in.input()
			if err != nil {
				return err
			}
			host, err := node.Open(cmd.Context(), in.hostRoot)
			if err != nil {
				return err
			}
			defer host.Close()
			progress := c.print.Progress()
			report, err := preflight.Run(cmd.Context(), host, preflight.Request{Input: input, Observe: tellChecks(progress)})
			progress.End()
			if err != nil {
				return err
			}
			err = c.print.Print(report, func(w io.Writer, colour cli.Colour) error { return writePreflight(w, colour, report, details) })
			if err != nil {
				return err
			}
			c.print.Next(nextAfter(a.Name, report.Outcome))
			return endOf(report.Outcome)
		},
	}
	in.addProfile(cmd)
	in.addCredentials(cmd)
	in.addPullSecret(cmd)
	in.addHostRoot(cmd, "/", "directory with the host's tree")
	cmd.Flags().BoolVar(&details, "details", false, "show the environment of each unit, and which way each host goes, too")
	return cmd
}

// tellChecks turns the checks in hand into progress.
func tellChecks(progress *cli.Progress) func(preflight.Progress) {
	return func(p preflight.Progress) {
		if len(p.Running) > 0 {
			progress.Step(fmt.Sprintf("%d of %d checks done; waiting for: %s", p.Done, p.Total, strings.Join(p.Running, ", ")))
		}
	}
}

func endOf(o preflight.Outcome) error {
	codes := map[preflight.Outcome]int{
		preflight.Broken: exitBroken, preflight.BreaksAtRestart: exitBreaksAtRestart, preflight.NotTested: exitUntested,
	}
	if code := codes[o]; code != 0 {
		return &cli.ExitError{Code: code}
	}
	return nil
}

func nextAfter(program string, o preflight.Outcome) string {
	switch o {
	case preflight.Ready:
		return program + " bootstrap with the same flags puts this host on the profile and proves it"
	case preflight.NotTested:
		return "do what the untested checks name, and run it again; " + program + " bootstrap proves what it can"
	default:
		return "mend what failed, from the top, and run it again; -o json or --details has everything that was seen"
	}
}

func writePreflight(w io.Writer, colour cli.Colour, r preflight.Report, details bool) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "profile %s, revision %s\n", r.Profile, r.Revision)
	for _, check := range r.Checks {
		if check.Verdict != preflight.Pass {
			writeCheck(b, colour, check, details)
		}
	}
	writePassed(b, colour, r.Checks, details)
	if details {
		writeEnvironment(b, colour, r.Environment)
		writeDecisions(b, colour, r.Decisions)
	}
	fmt.Fprintf(b, "%s: %d failed, %d untested, %d to look at, %d passed\n", outcomeWord(colour, r.Outcome),
		r.Count(preflight.Fail), r.Count(preflight.Untested), r.Count(preflight.Warn), r.Count(preflight.Pass))
	if first := r.Checks[0]; first.Verdict != preflight.Pass {
		fmt.Fprintf(b, "explained at %s, and so is each other ID at its own\n", first.Docs)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func outcomeWord(colour cli.Colour, o preflight.Outcome) string {
	switch o {
	case preflight.Ready:
		return colour.Green("ready")
	case preflight.Broken:
		return colour.Red("broken now")
	case preflight.BreaksAtRestart:
		return colour.Red("right now, and broken by the next restart")
	default:
		return colour.Yellow("not all could be tested")
	}
}

// shownSeen is how many lines of what was seen the text shows without --details.
const shownSeen = 3

// writeCheck writes one check that needs somebody, with what to do.
func writeCheck(b *strings.Builder, colour cli.Colour, r preflight.Result, details bool) {
	word, paint := "UNTESTED", colour.Yellow
	switch {
	case r.Verdict == preflight.Fail && r.Breaks == preflight.AtRestart:
		word, paint = "RESTART", colour.Red
	case r.Verdict == preflight.Fail:
		word, paint = "FAIL", colour.Red
	case r.Verdict == preflight.Warn:
		word = "WARN"
	}
	fmt.Fprintf(b, "%s%s %s %s", paint(word), strings.Repeat(" ", len("UNTESTED")-len(word)), r.ID, colour.Bold(r.Title))
	if r.Subject != "" {
		fmt.Fprintf(b, ": %s", r.Subject)
	}
	b.WriteByte('\n')
	for i, seen := range r.Seen {
		if i == shownSeen && !details && len(r.Seen) > shownSeen+1 {
			fmt.Fprintf(b, "         (and %d more lines with --details)\n", len(r.Seen)-shownSeen)
			break
		}
		fmt.Fprintf(b, "         %s\n", seen)
	}
	if r.Fix != "" {
		fmt.Fprintf(b, "    fix: %s\n", r.Fix)
	}
}

// writePassed writes what passed, a line each.
func writePassed(b *strings.Builder, colour cli.Colour, results []preflight.Result, details bool) {
	var table cli.Table
	rows := 0
	for _, r := range results {
		if r.Verdict != preflight.Pass {
			continue
		}
		rows++
		for i, seen := range r.Seen {
			if i == 0 {
				table.Painted(cli.Cell{Text: "pass", Paint: colour.Green}, cli.Cell{Text: "   " + r.ID}, cli.Cell{Text: r.Title}, cli.Cell{Text: orDash(r.Subject)}, cli.Cell{Text: seen})
			} else if details {
				table.Row("", "", "", "", seen)
			}
		}
	}
	if rows > 0 {
		_ = table.Write(b, colour, 0) // a strings.Builder takes everything
	}
}

// writeEnvironment writes the four layers of each unit.
func writeEnvironment(b *strings.Builder, colour cli.Colour, units []preflight.UnitEnvironment) {
	for _, u := range units {
		fmt.Fprintf(b, "\n%s\n", colour.Bold("environment of "+u.Unit))
		table := cli.Table{Header: []string{"VARIABLE", "DESIRED", "NEXT START", "FROM", "RUNNING", "ABOVE"}}
		for _, v := range u.Variables {
			table.Row(v.Name, valueOf(v.Desired), valueOf(v.NextStart), orDash(v.From), valueOf(v.Running), orDash(v.Above))
		}
		writeTable(b, colour, &table)
		for _, f := range append(u.DropIns, u.EnvironmentFiles...) {
			fmt.Fprintf(b, "  loaded by systemd: %s\n", f)
		}
		for _, why := range u.Unknown {
			fmt.Fprintf(b, "  %s %s\n", colour.Yellow("unknown:"), why)
		}
	}
}

func valueOf(v *string) string {
	if v == nil {
		return "-"
	}
	if text := []rune(*v); len(text) > maxValue {
		return string(text[:maxValue-1]) + "…"
	}
	return *v
}

// writeDecisions writes which way each host goes.
func writeDecisions(b *strings.Builder, colour cli.Colour, decisions []preflight.Decision) {
	fmt.Fprintf(b, "\n%s\n", colour.Bold("which way each host goes, by Go's matcher"))
	table := cli.Table{Header: []string{"HOST", "ROUTE", "ENTRY", "WHAT"}}
	for _, d := range decisions {
		paint := colour.Yellow
		switch {
		case d.Wrong():
			paint = colour.Red
		case d.Route == v1alpha1.RouteDirect:
			paint = colour.Green
		}
		word := strings.ToLower(string(d.Route))
		if d.Wrong() {
			word += " (wrong)"
		}
		table.Painted(cli.Cell{Text: d.URL}, cli.Cell{Text: word, Paint: paint}, cli.Cell{Text: orDash(d.Entry)}, cli.Cell{Text: d.What})
	}
	writeTable(b, colour, &table)
	b.WriteByte('\n')
}
