package apply

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// forward makes the change, proves it and decides. It may begin at any step after arming: what
// was done already is recognised and not done again.
func (t *transaction) forward(ctx context.Context) Result {
	if err := t.change(ctx); err != nil {
		return t.failed(ctx, err)
	}
	units := t.activeUnits()
	if t.checks.Prober == nil || len(units) == 0 {
		return t.commit(ctx, Done, nil)
	}
	if err := t.enter(ctx, StepProve, ""); err != nil {
		return t.failed(ctx, err)
	}
	proof := t.prove(ctx, StepProve, units)
	t.result.Proof = proof
	if err := ctx.Err(); err != nil {
		return t.interrupted(err)
	}
	bad := caused(t.rec.Baseline, proof.Failures)
	switch {
	case len(proof.Failures) == 0:
		t.rec.Digests = digests(proof)
		return t.commit(ctx, Done, nil)
	case len(bad) == 0:
		return t.commit(ctx, Inconclusive, proof.Failures[0])
	case t.rec.OldDead:
		t.note("the previous password no longer opens the proxy, so the change was not undone")
		return t.commit(ctx, NotUndone, bad[0])
	}
	return t.failed(ctx, bad[0])
}

// failed undoes the change, unless it is only this process that ends.
func (t *transaction) failed(ctx context.Context, err error) Result {
	if ctx.Err() != nil {
		return t.interrupted(err)
	}
	t.rec.First = err.Error()
	t.result.Err = err
	return t.undo(ctx)
}

// change writes, reloads and restarts.
func (t *transaction) change(ctx context.Context) error {
	limits := t.cfg.Timeouts
	err := t.step(ctx, StepWrite, "", limits.Reload, func(context.Context) error {
		return putNext(t.cfg.Files, t.rec.Changes)
	})
	if err != nil {
		return err
	}
	err = t.step(ctx, StepReload, "", limits.Reload, func(ctx context.Context) error {
		return t.reload(ctx, func(c Change) Side { return c.Next }, t.checks.Judge)
	})
	if err != nil {
		return err
	}
	for i := range t.rec.Units {
		if !t.rec.Units[i].Active {
			continue
		}
		if err := t.restart(ctx, &t.rec.Units[i]); err != nil {
			return err
		}
		if err := t.check(ctx, &t.rec.Units[i]); err != nil {
			return err
		}
	}
	return nil
}

// reload makes systemd read its files again and compares what it loaded. Reloading is never left
// out: systemd itself judges the need by file times, and misses an equal one.
func (t *transaction) reload(ctx context.Context, side func(Change) Side, judge Judge) error {
	if err := t.cfg.Units.Reload(ctx); err != nil {
		return fmt.Errorf("reloading systemd: %w", err)
	}
	var units []string
	for _, c := range t.rec.Changes {
		if c.Unit != "" && !slices.Contains(units, c.Unit) {
			units = append(units, c.Unit)
		}
	}
	for _, unit := range units {
		state, err := t.cfg.Units.State(ctx, unit)
		if err != nil {
			return fmt.Errorf("asking systemd for %q: %w", unit, err)
		}
		if err := compareLoaded(unit, state, t.rec.Changes, side); err != nil {
			return err
		}
		if judge == nil || state.Load != "loaded" {
			continue
		}
		if err := judge.Loaded(ctx, unit); err != nil {
			return err
		}
	}
	return nil
}

// compareLoaded compares the drop-ins that systemd has with those that stand on disk. A unit that
// is not installed yet has loaded nothing, which is no fault of the files.
func compareLoaded(unit string, state UnitState, changes []Change, side func(Change) Side) error {
	if state.Load != "loaded" {
		return nil
	}
	for _, c := range changes {
		if c.Unit != unit || !isDropIn(c.Path) {
			continue
		}
		loaded := slices.Contains(state.DropInPaths, c.Path)
		if exists := side(c).Exists; exists && !loaded {
			return &LoadedError{Unit: unit, Detail: fmt.Sprintf("%q is on disk and not loaded; is it masked by a file of the same name, or unreadable?", c.Path)}
		} else if !exists && loaded {
			return &LoadedError{Unit: unit, Detail: fmt.Sprintf("%q is gone from disk and still loaded", c.Path)}
		}
	}
	return nil
}

func isDropIn(file string) bool {
	return strings.HasSuffix(path.Dir(file), ".d") && path.Ext(file) == ".conf"
}

// check asks the restarted daemon itself.
func (t *transaction) check(ctx context.Context, u *UnitRecord) error {
	runtime, known := t.checks.runtime(u.Unit)
	if t.checks.Judge == nil && (t.checks.Daemons == nil || !known) {
		return nil
	}
	limit := t.cfg.Timeouts.Ready + t.cfg.Timeouts.Creation
	return t.step(ctx, StepCheck, u.Unit, limit, func(ctx context.Context) error {
		if t.checks.Judge != nil {
			if err := t.checks.Judge.Running(ctx, u.Unit); err != nil {
				return err
			}
		}
		if t.checks.Daemons == nil || !known {
			return nil
		}
		version, err := t.checks.Daemons.Ready(ctx, runtime)
		if err != nil {
			return &RestartError{Unit: u.Unit, Err: fmt.Errorf("waiting until it answers: %w", err)}
		}
		t.note("%s answers, version %q", u.Unit, version)
		return t.noneStuck(ctx, u, runtime)
	})
}

// commit decides for the new state. From then on only tidying is left.
func (t *transaction) commit(ctx context.Context, outcome Outcome, cause error) Result {
	t.rec.Outcome = outcome
	if cause != nil {
		t.rec.First = cause.Error()
	}
	if err := t.enter(ctx, StepCommit, ""); err != nil {
		t.rec.Outcome, t.rec.First = "", ""
		return t.failed(ctx, err)
	}
	t.result.Outcome, t.result.Err = outcome, cause
	t.finish(ctx)
	return t.result
}

// finish tidies up after the decision, whichever it was. It does not stop with the caller's
// context: it is short, and the decision stands. What fails leaves the journal open for the next.
func (t *transaction) finish(ctx context.Context) {
	limit := t.cfg.Timeouts.Reload
	err := t.observed(context.WithoutCancel(ctx), t.rec.Step, "", "", limit, func(ctx context.Context) error {
		var errs []error
		if t.rec.Step == StepCommit {
			errs = append(errs, t.settleKnownGood())
			t.pruneDirs()
		}
		errs = append(errs, t.cfg.Guard.Disarm(ctx), purge(t.cfg.Files, &t.rec))
		if err := errors.Join(errs...); err != nil {
			return err
		}
		t.rec.Step, t.rec.Unit, t.rec.By = StepClosed, "", t.cfg.By
		return writeJournal(t.cfg.Files, &t.rec)
	})
	if err != nil {
		t.note("tidying up afterwards: %v", err)
	}
}

// tidy closes a transaction that leaves the old state.
func (t *transaction) tidy(ctx context.Context) {
	t.rec.Step, t.rec.Unit = StepTidy, ""
	if err := writeJournal(t.cfg.Files, &t.rec); err != nil {
		t.note("%v", err)
		return
	}
	t.finish(ctx)
}

// settleKnownGood records what was proven, and forgets it when the proxy was removed.
func (t *transaction) settleKnownGood() error {
	if t.rec.Outcome != Done {
		return nil
	}
	if t.rec.Revision == "" {
		_, err := t.cfg.Files.Remove(KnownGoodPath)
		return err
	}
	if !t.rec.Proven {
		return nil
	}
	return writeKnownGood(t.cfg.Files, &t.rec, t.cfg.Clock.Now())
}

// pruneDirs removes the directories that removed files leave empty.
func (t *transaction) pruneDirs() {
	for _, c := range t.rec.Changes {
		if c.Next.Exists {
			continue
		}
		for dir := path.Dir(c.Path); ours(dir); dir = path.Dir(dir) {
			if _, err := t.cfg.Files.Remove(dir); err != nil {
				break // something else is in it
			}
		}
	}
}

// ours says that a directory exists for Proxyward's files only, or for one unit's drop-ins.
func ours(dir string) bool {
	const etc = "/etc/proxyward"
	return dir == etc || strings.HasPrefix(dir, etc+"/") ||
		path.Dir(dir) == "/etc/systemd/system" && strings.HasSuffix(dir, ".d")
}
