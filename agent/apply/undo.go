package apply

import (
	"context"
	"errors"
	"fmt"
)

// maxUndoTries bounds how many processes begin the same undo.
const maxUndoTries = 5

// undo brings the old state back: previous files byte and mode exact, a reload, and each daemon as
// the journal says that it was. The first failure, if there was one, is what is reported.
func (t *transaction) undo(ctx context.Context) Result {
	t.rec.UndoTries++
	if err := t.restore(ctx); err != nil {
		if ctx.Err() != nil {
			return t.interrupted(err)
		}
		return t.undoFailed(ctx, err)
	}
	if units := t.activeUnits(); t.checks.Prober != nil && t.rec.Proven && len(units) > 0 && t.restartedAny() {
		t.journalled(StepUndoProve, "")
		t.result.Reproof = t.prove(ctx, StepUndoProve, units)
		if err := ctx.Err(); err != nil {
			return t.interrupted(err)
		}
		if bad := caused(t.rec.Baseline, t.result.Reproof.Failures); len(bad) > 0 {
			t.note("after the undo there is a failure that was not there before: %v", bad[0])
		}
	}
	t.result.Outcome, t.rec.Outcome = RolledBack, RolledBack
	if t.rec.First == "" {
		// Nothing failed: whoever made the change went away.
		t.result.Outcome, t.rec.Outcome = Interrupted, Interrupted
	}
	t.tidy(ctx)
	return t.result
}

// undoFailed leaves the journal open and the dead-man armed for another try, a bounded number of
// times. After the last the contents are kept for a person.
func (t *transaction) undoFailed(ctx context.Context, err error) Result {
	t.result.Outcome, t.result.UndoErr = UndoFailed, err
	if t.rec.UndoTries < maxUndoTries {
		return t.result
	}
	t.note("the undo failed %d times and is given up; the previous files are in %q", t.rec.UndoTries, attemptDir(t.rec.Attempt))
	if err := t.cfg.Guard.Disarm(ctx); err != nil {
		t.note("disarming the dead-man: %v", err)
	}
	t.rec.Outcome, t.rec.By = UndoFailed, t.cfg.By
	t.journalled(StepClosed, "")
	return t.result
}

// journalled journals a step of the undo. Here a failure is told and does not stop: putting the
// host right matters more than the record of it, and each step recognises what was done.
func (t *transaction) journalled(step Step, unit string) {
	t.rec.Step, t.rec.Unit = step, unit
	if err := writeJournal(t.cfg.Files, &t.rec); err != nil {
		t.note("%v", err)
	}
}

// restore goes on after failures, so that one file or daemon keeps no other from its old state.
func (t *transaction) restore(ctx context.Context) error {
	var errs []error
	limit := t.cfg.Timeouts.Reload
	t.journalled(StepUndoWrite, "")
	errs = append(errs, t.observed(ctx, StepUndoWrite, "", "", limit, func(context.Context) error {
		return putPrev(t.cfg.Files, t.rec.Changes)
	}))
	if err := ctx.Err(); err != nil {
		return err
	}
	t.journalled(StepUndoReload, "")
	errs = append(errs, t.observed(ctx, StepUndoReload, "", "", limit, func(ctx context.Context) error {
		return t.reload(ctx, func(c Change) Side { return c.Prev }, nil)
	}))
	for i := range t.rec.Units {
		if err := ctx.Err(); err != nil {
			return err
		}
		errs = append(errs, t.undoRestart(ctx, &t.rec.Units[i]))
	}
	return errors.Join(errs...)
}

// undoRestart makes one daemon run with the old files, if it may have taken the new ones. A unit
// that was stopped is left stopped, and one that the boot is about to start is left to it.
func (t *transaction) undoRestart(ctx context.Context, u *UnitRecord) error {
	state, err := t.cfg.Units.State(ctx, u.Unit)
	if err != nil {
		return &RestartError{Unit: u.Unit, Err: err}
	}
	up := state.up() && !state.Job
	switch {
	case up && state.InvocationID == u.InvocationID:
		return nil // never restarted
	case up && u.UndoReplaced != nil && state.InvocationID != *u.UndoReplaced:
		return nil // restarted by an undo before
	case !u.Active && !state.running():
		return nil
	case state.Active == "inactive" && state.Job && t.rec.BootID != t.cfg.BootID:
		// The boot is about to start it, with the old files. To wait for that here could take for
		// ever: whoever undoes may be ordered before it. A unit that the boot does not start is
		// started below, as it ran when the change began.
		t.note("%q is due in this boot; its start is left to systemd", u.Unit)
		return nil
	}
	replaced := state.InvocationID
	u.UndoReplaced = &replaced
	t.journalled(StepUndoRestart, u.Unit)
	if err := t.countRestart(u.Unit); err != nil {
		t.note("counting the restart of %q: %v", u.Unit, err)
	}
	err = t.observed(ctx, StepUndoRestart, u.Unit, t.effect(u.Unit), t.cfg.Timeouts.restart(state), func(ctx context.Context) error {
		// Whatever the failed change left behind must not keep the daemon down.
		if err := t.cfg.Units.ResetFailed(ctx, u.Unit); err != nil {
			return fmt.Errorf("resetting its failure: %w", err)
		}
		if state.running() {
			return t.cfg.Units.Restart(ctx, u.Unit)
		}
		return t.cfg.Units.Start(ctx, u.Unit)
	})
	if err != nil {
		return &RestartError{Unit: u.Unit, Err: err}
	}
	t.result.Restarted = append(t.result.Restarted, u.Unit)
	return nil
}

// restartedAny says that a daemon was restarted by the undo, so that there is something to prove.
func (t *transaction) restartedAny() bool {
	for _, u := range t.rec.Units {
		if u.UndoReplaced != nil {
			return true
		}
	}
	return false
}
