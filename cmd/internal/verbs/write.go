package verbs

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/internal/cli"
)

// writeUnits writes how each unit stands, with what was found of it below.
func writeUnits(b *strings.Builder, colour cli.Colour, units []v1alpha1.UnitStatus) {
	for _, u := range units {
		word, paint := "in sync", colour.Green
		switch u.InSync {
		case metav1.ConditionFalse:
			word, paint = "not in sync", colour.Red
		case metav1.ConditionUnknown:
			word, paint = "unknown", colour.Yellow
		}
		fmt.Fprintf(b, "%s: %s", u.Name, paint(word))
		if u.State != "" {
			fmt.Fprintf(b, " (%s)", u.State)
		}
		b.WriteByte('\n')
		for _, f := range u.Findings {
			fmt.Fprintf(b, "  %s", f.Reason)
			if f.Path != "" && f.Path != u.Name {
				fmt.Fprintf(b, " %s", f.Path)
			}
			fmt.Fprintf(b, ": %s\n", f.Message)
		}
	}
}

// writeActions writes the steps of a plan.
func writeActions(b *strings.Builder, colour cli.Colour, actions []bootstrap.Action, title string) {
	if len(actions) == 0 {
		return
	}
	fmt.Fprintln(b, title)
	var table cli.Table
	for _, action := range actions {
		what := action.Path
		switch {
		case what != "":
		case action.Unit != "":
			what = action.Unit
		default:
			what = "systemd"
		}
		table.Row(string(action.Kind), what, action.Why)
	}
	writeTable(b, colour, &table)
}

// writeCanaries writes what each pull showed.
func writeCanaries(b *strings.Builder, colour cli.Colour, canaries []v1alpha1.CanaryEvidence, title string) {
	if len(canaries) == 0 {
		return
	}
	fmt.Fprintln(b, title)
	table := cli.Table{Header: []string{"CANARY", "VERDICT", "ROUTE", "FROM", "BYTES", "TIME", "IMAGE"}}
	for _, e := range canaries {
		paint := colour.Red
		switch e.Verdict {
		case v1alpha1.VerdictVerified:
			paint = colour.Green
		case v1alpha1.VerdictInconclusive, v1alpha1.VerdictNeverRun:
			paint = colour.Yellow
		}
		table.Painted(
			cli.Cell{Text: strings.ToLower(string(e.Role))}, cli.Cell{Text: string(e.Verdict), Paint: paint},
			cli.Cell{Text: orDash(strings.ToLower(string(e.Route)))}, cli.Cell{Text: orDash(e.Remote)},
			cli.Cell{Text: fmt.Sprint(e.Bytes)}, cli.Cell{Text: e.Duration.Round(time.Millisecond).String()}, cli.Cell{Text: e.Image},
		)
	}
	writeTable(b, colour, &table)
	for _, e := range canaries {
		if e.Message != "" {
			fmt.Fprintf(b, "  %s: %s\n", strings.ToLower(string(e.Role)), e.Message)
		}
	}
}

// writeTable writes an indented table; a strings.Builder takes all that is written.
func writeTable(b *strings.Builder, colour cli.Colour, table *cli.Table) {
	_ = table.Write(b, colour, 2)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// writeReport writes what a run did and how it ended.
func writeReport(w io.Writer, colour cli.Colour, r bootstrap.Report, verdict string) error {
	b := &strings.Builder{}
	if r.Profile != "" {
		fmt.Fprintf(b, "profile %s, revision %s\n", r.Profile, r.Revision)
	}
	writeActions(b, colour, r.Actions, "planned:")
	writeCanaries(b, colour, r.Before, "pulls before the change:")
	writeCanaries(b, colour, r.Canaries, "pulls:")
	writeCanaries(b, colour, r.Again, "pulls after the undo:")
	writeUnits(b, colour, r.Units)
	for _, unit := range r.LeftStopped {
		fmt.Fprintf(b, "%s was stopped and stays so\n", unit)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "%s %s\n", colour.Yellow("note:"), n)
	}
	if r.Error != "" {
		fmt.Fprintf(b, "%s %s\n", colour.Red("failed:"), r.Error)
	}
	if r.UndoError != "" {
		fmt.Fprintf(b, "%s %s\n", colour.Red("putting it back failed too:"), r.UndoError)
	}
	fmt.Fprintln(b, verdict)
	_, err := io.WriteString(w, b.String())
	return err
}
