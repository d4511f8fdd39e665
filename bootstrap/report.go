package bootstrap

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/runtimes"
)

// Report is what one run found, did and proved. It holds no secret.
type Report struct {
	Profile  string `json:"profile,omitempty"`
	Revision string `json:"revision,omitempty"`
	// Outcome of the change.
	Outcome apply.Outcome `json:"outcome"`
	// Error is the first thing that went wrong, UndoError what went wrong in putting things back.
	Error     string `json:"error,omitempty"`
	UndoError string `json:"undoError,omitempty"`
	// Actions that the plan had.
	Actions []Action `json:"actions"`
	// Restarted units, and those that were stopped and stay so.
	Restarted   []string `json:"restarted,omitempty"`
	LeftStopped []string `json:"leftStopped,omitempty"`
	// Units as they are now.
	Units []v1alpha1.UnitStatus `json:"units"`
	// Canaries of the new state, Before of the old one before the change, Again of the old one
	// after an undo.
	Canaries []v1alpha1.CanaryEvidence `json:"canaries,omitempty"`
	Before   []v1alpha1.CanaryEvidence `json:"canariesBefore,omitempty"`
	Again    []v1alpha1.CanaryEvidence `json:"canariesAfterUndo,omitempty"`
	Notes    []string                  `json:"notes,omitempty"`
}

// Action is one step of a plan.
type Action struct {
	Kind drift.ActionKind `json:"kind"`
	Unit string           `json:"unit,omitempty"`
	Path string           `json:"path,omitempty"`
	Why  string           `json:"why"`
}

// Verdict is what a report comes to.
type Verdict string

// The verdicts.
const (
	// VerdictGood: what was asked for was done, and proven as far as it was to be.
	VerdictGood Verdict = "good"
	// VerdictUntested: it was done, and something that says nothing of the proxy kept it from being
	// proven.
	VerdictUntested Verdict = "untested"
	VerdictFailed   Verdict = "failed"
)

// Verdict says what the report comes to at a stage. After the files alone, a daemon that still
// runs with another environment is no failure.
func (r Report) Verdict(stage Stage) Verdict {
	switch r.Outcome {
	case apply.Done, apply.Unchanged, apply.Inconclusive:
	default:
		return VerdictFailed
	}
	if stage == StageFiles {
		return VerdictGood
	}
	verdict := VerdictGood
	for _, u := range r.Units {
		switch u.InSync {
		case metav1.ConditionFalse:
			return VerdictFailed
		case metav1.ConditionUnknown:
			verdict = VerdictUntested
		}
	}
	for _, e := range r.Canaries {
		switch e.Verdict {
		case v1alpha1.VerdictVerified:
		case v1alpha1.VerdictInconclusive, v1alpha1.VerdictNeverRun:
			verdict = VerdictUntested
		default:
			return VerdictFailed
		}
	}
	if r.Outcome == apply.Inconclusive {
		verdict = VerdictUntested
	}
	return verdict
}

// Clean says that a removal left nothing of Proxyward on the host. Where there is no systemd, or no
// such unit any more, no daemon can have anything of it.
func (r Report) Clean() bool {
	if r.Outcome != apply.Done && r.Outcome != apply.Unchanged {
		return false
	}
	return !slices.ContainsFunc(r.Units, func(u v1alpha1.UnitStatus) bool {
		return u.InSync != metav1.ConditionTrue && u.State != "no systemd" && u.State != "not-found"
	})
}

func newReport(wanted Wanted, plan drift.Plan, result apply.Result, after drift.Plan, notes []string) Report {
	r := Report{
		Profile: wanted.Profile, Revision: wanted.Revision, Outcome: result.Outcome,
		Actions: Actions(plan), Units: Units(after),
		Restarted: result.Restarted, LeftStopped: result.LeftStopped,
		Canaries: evidence(result.Proof), Before: evidence(result.Baseline), Again: evidence(result.Reproof),
		Notes: append(notes, result.Notes...),
	}
	if result.Err != nil {
		r.Error = result.Err.Error()
	}
	if result.UndoErr != nil {
		r.UndoError = result.UndoErr.Error()
	}
	r.Notes = append(r.Notes, wanted.notes()...)
	return r
}

func evidence(p *apply.Proof) []v1alpha1.CanaryEvidence {
	if p == nil {
		return nil
	}
	return p.Evidence
}

// Actions are a plan's, without the content of any file.
func Actions(plan drift.Plan) []Action {
	out := make([]Action, len(plan.Actions))
	for i, a := range plan.Actions {
		out[i] = Action{Kind: a.Kind, Unit: a.Unit, Path: a.File.Path, Why: a.Why}
	}
	return out
}

// Units are a plan's verdicts in the form in which they are reported.
func Units(plan drift.Plan) []v1alpha1.UnitStatus {
	out := make([]v1alpha1.UnitStatus, len(plan.Units))
	for i, v := range plan.Units {
		out[i] = v1alpha1.UnitStatus{
			Name: v.Unit, Target: v.Target, State: v.State, InvocationID: v.InvocationID,
			InSync: status(v.InSync), Findings: v.Findings,
		}
	}
	return out
}

func status(t runtimes.Tristate) metav1.ConditionStatus {
	switch t {
	case runtimes.True:
		return metav1.ConditionTrue
	case runtimes.False:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionUnknown
	}
}
