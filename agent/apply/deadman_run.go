package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proxyward/proxyward/internal/hostfs"
)

// RunDeadman is what the dead-man does when systemd runs it. It waits for whoever is still at
// work, for a time; then it brings an unfinished change back to the old state, or tidies up a
// finished one, and disarms itself.
//
// While the dead-man is being tried it only looks whether it could do that: the outcome is
// Unchanged, and the error says what it could not.
func (a *Applier) RunDeadman(ctx context.Context, wait time.Duration) Result {
	last, err := ReadJournal(a.cfg.Files)
	if err != nil {
		return refused("", refusal(ReasonState, err, "the journal cannot be read"))
	}
	if last != nil && last.Step == StepTry {
		release, err := a.lockOnce(ctx)
		var held *hostfs.LockedError
		switch {
		case errors.As(err, &held):
			return Result{Outcome: Unchanged, Attempt: last.Attempt, Err: a.rehearse(ctx, last)}
		case err != nil:
			return refused(last.Attempt, refusal(ReasonBusy, err, "the lock cannot be taken"))
		}
		// Whoever tried it is gone.
		return underLock(release, func() Result { return a.deadmanLocked(ctx) })
	}
	lockCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	release, err := a.cfg.Lock.Lock(lockCtx)
	if err != nil {
		return refused("", refusal(ReasonBusy, err, "another process is still at work after %s", wait))
	}
	return underLock(release, func() Result { return a.deadmanLocked(ctx) })
}

func (a *Applier) deadmanLocked(ctx context.Context) Result {
	result := a.recoverLocked(ctx, Recovery{})
	if result.Outcome == Unchanged {
		// The change was finished while this process waited, or its disarming was.
		result.Err = a.cfg.Guard.Disarm(ctx)
	}
	return result
}

// lockOnce takes the lock if it is free.
func (a *Applier) lockOnce(ctx context.Context) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return a.cfg.Lock.Lock(ctx)
}

// rehearse looks whether everything that an undo needs can be reached.
func (a *Applier) rehearse(ctx context.Context, rec *Record) error {
	for _, u := range rec.Units {
		if _, err := a.cfg.Units.State(ctx, u.Unit); err != nil {
			return fmt.Errorf("asking systemd for %q: %w", u.Unit, err)
		}
	}
	for _, c := range rec.Changes {
		if !c.Prev.Exists {
			continue
		}
		if _, err := a.cfg.Files.ReadFile(c.Prev.Saved); err != nil {
			return fmt.Errorf("reading what would be put back: %w", err)
		}
	}
	return nil
}
