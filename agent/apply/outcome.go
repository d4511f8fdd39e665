package apply

import (
	"fmt"
	"strings"
)

// Outcome is how a transaction ended.
type Outcome string

// The outcomes, with the state that they leave the host in.
const (
	// Done: new state, proven where proof was asked for.
	Done Outcome = "Done"
	// Unchanged: there was nothing to do.
	Unchanged Outcome = "Unchanged"
	// Refused: old state; the error says why, nothing was tried.
	Refused Outcome = "Refused"
	// ProbeFailed: old state; the desired proxy did not work when it was asked first.
	ProbeFailed Outcome = "ProbeFailed"
	// RolledBack: old state again; the error is the first failure.
	RolledBack Outcome = "RolledBack"
	// Inconclusive: new state; the proof failed for reasons that are not the change's.
	Inconclusive Outcome = "Inconclusive"
	// NotUndone: new state; the proof failed, but the old password is dead already.
	NotUndone Outcome = "NotUndone"
	// UndoFailed: the undo failed too; the journal stays open and the dead-man armed.
	UndoFailed Outcome = "UndoFailed"
	// Interrupted: whoever comes next finishes the open journal, or, from Recover, old state since
	// nothing had been changed yet. No failure of the change.
	Interrupted Outcome = "Interrupted"
)

// Result is what a transaction did.
type Result struct {
	Outcome Outcome
	Attempt string
	// Resumed says that somebody else had begun it.
	Resumed bool
	// Err is the first failure; nil for Done and Unchanged.
	Err error
	// UndoErr is what failed in the undo.
	UndoErr error
	// Baseline, Proof and Reproof are before, after, and after an undo; nil when not made.
	Baseline, Proof, Reproof *Proof
	// Restarted units, and those that were stopped and stay so.
	Restarted, LeftStopped []string
	// Notes for a person.
	Notes []string
}

// Reason says why something was refused.
type Reason string

// The reasons for a refusal.
const (
	ReasonPlan          Reason = "PlanRefused"
	ReasonRestart       Reason = "RestartRefused"
	ReasonNotApproved   Reason = "NotApproved"
	ReasonApprovalStale Reason = "ApprovalStale"
	ReasonApprovalUsed  Reason = "ApprovalUsed"
	ReasonBusy          Reason = "Busy"
	ReasonUnfinished    Reason = "Unfinished"
	ReasonNotRegular    Reason = "NotRegular"
	ReasonState         Reason = "StateUnreadable"
	ReasonGuard         Reason = "DeadManFailed"
)

// RefusedError says why nothing was tried.
type RefusedError struct {
	Reason Reason
	Detail string
	Err    error
}

// Error implements error.
func (e *RefusedError) Error() string {
	if e.Err == nil {
		return "refusing to apply: " + e.Detail
	}
	return fmt.Sprintf("refusing to apply: %s: %v", e.Detail, e.Err)
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

func refusal(reason Reason, err error, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Detail: fmt.Sprintf(format, args...), Err: err}
}

// LoadedError says that systemd did not load what is on disk.
type LoadedError struct {
	Unit, Detail string
}

// Error implements error.
func (e *LoadedError) Error() string {
	return fmt.Sprintf("comparing what systemd loaded for %q with the files: %s", e.Unit, e.Detail)
}

// RestartError says that a daemon did not come back as it should.
type RestartError struct {
	Unit string
	Err  error
}

// Error implements error.
func (e *RestartError) Error() string { return fmt.Sprintf("restarting %q: %v", e.Unit, e.Err) }

// Unwrap returns the cause.
func (e *RestartError) Unwrap() error { return e.Err }

// InterruptedError says that whoever made the change went away at a step.
type InterruptedError struct {
	Step Step
}

// Error implements error.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("applying was interrupted at step %q", e.Step)
}

// recordedError is a failure that the journal kept for its reporter.
type recordedError string

// Error implements error.
func (e recordedError) Error() string { return string(e) }

// StuckError says that containers which were in creation when the daemon was restarted still are.
type StuckError struct {
	Unit string
	IDs  []string
}

// Error implements error.
func (e *StuckError) Error() string {
	return fmt.Sprintf("checking %q after its restart: %d container(s) stuck in creation: %s; delete their pods",
		e.Unit, len(e.IDs), strings.Join(e.IDs, ", "))
}
