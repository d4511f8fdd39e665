package apply

import (
	"context"
	"slices"
)

// maxResumes bounds how many processes go on forward with the same change before it is undone: a
// change that ends whoever makes it must not do so for ever.
const maxResumes = 3

// Recovery is how an unfinished change is ended.
type Recovery struct {
	// Forward finishes a change that was under way, proving it by the Checks; otherwise it is undone.
	Forward bool
	Checks
}

// Recover ends what another process left unfinished, in the new or in the old state. It is called
// before anything else by whoever may change the host. Unchanged means that there was nothing.
func (a *Applier) Recover(ctx context.Context, r Recovery) Result {
	last, err := ReadJournal(a.cfg.Files)
	if err == nil && (last == nil || last.Finished()) {
		return Result{Outcome: Unchanged}
	}
	release, err := a.lock(ctx)
	if err != nil {
		return refused("", refusal(ReasonBusy, err, "another transaction holds the lock"))
	}
	return underLock(release, func() Result { return a.recoverLocked(ctx, r) })
}

func (a *Applier) recoverLocked(ctx context.Context, r Recovery) Result {
	last, err := ReadJournal(a.cfg.Files)
	if err != nil {
		return refused("", refusal(ReasonState, err, "the journal cannot be read"))
	}
	if last == nil || last.Finished() {
		return Result{Outcome: Unchanged}
	}
	t := &transaction{Applier: a, checks: r.Checks, rec: *last}
	t.result = Result{Attempt: last.Attempt, Resumed: true}
	if t.hist, err = readHistory(a.cfg.Files); err != nil {
		// An unfinished change must not wait for it: restarts go uncounted, and the damaged file
		// stays as it is, for it holds off used approvals.
		t.hist.unreadable = true
		t.note("%v", err)
	}
	if last.First != "" {
		t.result.Err = recordedError(last.First)
	}
	for _, u := range last.Units {
		if !u.Active {
			t.result.LeftStopped = append(t.result.LeftStopped, u.Unit)
		}
	}
	return t.resume(ctx, r.Forward)
}

// resume goes on from where the journal stands.
func (t *transaction) resume(ctx context.Context, forward bool) Result {
	at := t.rec.Step
	switch {
	case at.untouched():
		t.rec.Outcome, t.result.Outcome = Interrupted, Interrupted
		t.result.Err = &InterruptedError{Step: at}
		t.tidy(ctx)
		return t.result
	case at.decided():
		t.result.Outcome = t.rec.Outcome
		t.finish(ctx)
		return t.result
	case at.undoing():
		return t.undoInterrupted(ctx, at)
	case forward && t.canGoOn():
		t.rec.Resumes++
		return t.forward(ctx)
	case t.rec.OldDead && at == StepProve:
		// Every daemon runs with the new files, and the old ones are known not to work.
		t.note("the previous password no longer opens the proxy, so the change was not undone")
		return t.commit(ctx, NotUndone, &InterruptedError{Step: at})
	}
	return t.undoInterrupted(ctx, at)
}

func (t *transaction) undoInterrupted(ctx context.Context, at Step) Result {
	if t.result.Err == nil {
		t.result.Err = &InterruptedError{Step: at}
	}
	return t.undo(ctx)
}

// canGoOn says that the change can be finished by this process: not too often tried, able to be
// proven if it was to be, and every new content still there.
func (t *transaction) canGoOn() bool {
	if t.rec.Resumes >= maxResumes || (t.rec.Proven && t.checks.Prober == nil) {
		return false
	}
	return !slices.ContainsFunc(t.rec.Changes, func(c Change) bool {
		if !c.Next.Exists {
			return false
		}
		_, err := t.cfg.Files.Lstat(c.Next.Saved)
		return err != nil
	})
}
