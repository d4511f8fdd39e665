package applytest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Finisher is who ends what the killed process left.
type Finisher string

// The finishers.
const (
	// Successor is the next agent: it finishes the change.
	Successor Finisher = "successor"
	// Undoer is a next process that cannot prove, and undoes the change.
	Undoer Finisher = "undoer"
	// DeadMan comes when nobody does, on the same boot.
	DeadMan Finisher = "dead-man"
	// DeadManAfterBoot comes after a reboot.
	DeadManAfterBoot Finisher = "dead-man-after-boot"
)

// Finishers are all of them.
func Finishers() []Finisher { return []Finisher{Successor, Undoer, DeadMan, DeadManAfterBoot} }

// Snapshot is a host as far as the change matters, with nothing in it that differs between two
// equal hosts: paths with mode and content, units with state and the environment of their process.
type Snapshot map[string]string

// Bench is a host that a change can be made on and be killed in.
type Bench interface {
	// Reset brings the host into the old state, with no trace of an earlier change.
	Reset(t testing.TB)
	// Change makes the change in a process that dies at the point, and says whether it did. Point 0
	// lets it live.
	Change(t testing.TB, at int, moment Moment) (died bool)
	// Finish has somebody end what was left; it dies at the point as Change does.
	Finish(t testing.TB, by Finisher, at int, moment Moment) (died bool)
	// Snapshot of the host. Leftovers (an open journal, contents, units and program of the
	// dead-man) are in it, under names of their own.
	Snapshot(t testing.TB) Snapshot
}

// Plan of a run of the suite.
type Plan struct {
	// Finishers to try at each point; default all.
	Finishers []Finisher
	// Moments to die at; default all.
	Moments []Moment
	// KillFinisher also kills the finisher, at a point that differs from run to run, before it is
	// let live.
	KillFinisher bool
	// Stride tries every n-th point only; default 1.
	Stride int
}

// TestEveryStep kills the change at every point and requires that the host ends exactly in the old
// or in the new state, whoever finishes. It fails when there was no point to die at.
func TestEveryStep(t *testing.T, bench Bench, plan Plan) {
	t.Helper()
	if plan.Finishers == nil {
		plan.Finishers = Finishers()
	}
	if plan.Moments == nil {
		plan.Moments = []Moment{Before, During, After}
	}
	plan.Stride = max(plan.Stride, 1)
	bench.Reset(t)
	before := bench.Snapshot(t)
	if bench.Change(t, 0, Before) {
		t.Fatal("the change died though nobody killed it")
	}
	after := bench.Snapshot(t)
	for _, by := range plan.Finishers {
		for _, moment := range plan.Moments {
			t.Run(fmt.Sprintf("%s/%d", by, moment), func(t *testing.T) {
				points := everyPoint(t, bench, plan, by, moment, before, after)
				if points == 0 {
					t.Fatal("the change passed no point to die at")
				}
				t.Logf("killed at %d points", points)
			})
		}
	}
}

func everyPoint(t *testing.T, bench Bench, plan Plan, by Finisher, moment Moment, before, after Snapshot) (points int) {
	// Far above what any change does: it ends when the change no longer dies.
	const tooMany = 2000
	for at := 1; at < tooMany; at += plan.Stride {
		bench.Reset(t)
		if !bench.Change(t, at, moment) {
			return points
		}
		points++
		if plan.KillFinisher {
			bench.Finish(t, by, 1+at*7%23, moment)
		}
		if bench.Finish(t, by, 0, Before) {
			t.Fatalf("point %d: the finisher died though nobody killed it", at)
		}
		got := bench.Snapshot(t)
		if !maps.Equal(got, before) && !maps.Equal(got, after) {
			t.Fatalf("point %d: the host is between the old and the new state:\nfrom the old: %s\nfrom the new: %s",
				at, difference(before, got), difference(after, got))
		}
	}
	t.Fatal("the change never ended")
	return points
}

func difference(want, got Snapshot) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have, ok := got[name]; !ok {
			out = append(out, fmt.Sprintf("%s is missing", name))
		} else if have != want[name] {
			out = append(out, fmt.Sprintf("%s is %q instead of %q", name, have, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			out = append(out, fmt.Sprintf("%s is %q and should not be there", name, got[name]))
		}
	}
	return fmt.Sprint(out)
}
