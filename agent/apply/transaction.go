package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// transaction is one change under the lock.
type transaction struct {
	*Applier
	checks Checks
	hist   history
	rec    Record
	result Result
}

// enter journals a step and tells of it. A step is not taken when the context has ended: the
// journal then says where the next one goes on.
func (t *transaction) enter(ctx context.Context, step Step, unit string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.rec.Step, t.rec.Unit = step, unit
	if err := writeJournal(t.cfg.Files, &t.rec); err != nil {
		return err
	}
	return nil
}

// step journals a step, takes it within a time, and tells of both ends.
func (t *transaction) step(ctx context.Context, step Step, unit string, limit time.Duration, do func(context.Context) error) error {
	if err := t.enter(ctx, step, unit); err != nil {
		return err
	}
	return t.observed(ctx, step, unit, "", limit, do)
}

func (t *transaction) observed(ctx context.Context, step Step, unit, note string, limit time.Duration, do func(context.Context) error) error {
	t.cfg.Observe(Event{Step: step, Unit: unit, Note: note, At: t.cfg.Clock.Now()})
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(ctx)
	t.cfg.Observe(Event{Step: step, Unit: unit, Ended: true, Err: err, At: t.cfg.Clock.Now()})
	return err
}

// open looks at the host without changing it: what the files replace, how the units are.
func (t *transaction) open(ctx context.Context, req Request) error {
	t.rec = Record{
		Attempt: req.attempt(), PlanHash: req.Plan.Hash, Revision: req.Revision,
		CredentialsVersion: req.CredentialsVersion, BootID: t.cfg.BootID, Begun: t.cfg.Clock.Now().UTC(),
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeouts.Reload)
	defer cancel()
	changes, err := planChanges(t.cfg.Files, req.Plan.Actions, req.attempt())
	if err != nil {
		return err
	}
	t.rec.Changes = changes
	for _, unit := range req.Plan.Restarts() {
		state, err := t.cfg.Units.State(ctx, unit)
		if err != nil {
			return fmt.Errorf("asking systemd for %q: %w", unit, err)
		}
		if err := req.approvedInvocation(unit, state.InvocationID); err != nil {
			return err
		}
		u := UnitRecord{Unit: unit, Active: state.running(), InvocationID: state.InvocationID}
		if !u.Active {
			t.result.LeftStopped = append(t.result.LeftStopped, unit)
		}
		t.rec.Units = append(t.rec.Units, u)
	}
	return nil
}

// running says that a restart would replace a process.
func (s UnitState) running() bool {
	return s.up() || s.Active == "activating"
}

// up says that its process has been started.
func (s UnitState) up() bool {
	return slices.Contains([]string{"active", "reloading", "refreshing"}, s.Active)
}

// ask asks with the desired environment, and makes the baseline with the old one. It returns the
// failures that forbid the change.
func (t *transaction) ask(ctx context.Context) []Failure {
	units := t.activeUnits()
	if t.checks.Prober == nil || len(units) == 0 {
		return nil
	}
	var asked Proof
	_ = t.observed(ctx, StepAsk, "", "", t.cfg.Timeouts.Ask, func(ctx context.Context) error {
		asked = t.checks.Prober.Ask(ctx)
		return firstOf(asked.Failures)
	})
	if failures := caused(nil, asked.Failures); len(failures) > 0 {
		t.result.Proof = &asked
		return failures
	}
	t.result.Baseline = t.prove(ctx, StepBaseline, units)
	t.rec.Proven = true
	t.rec.Baseline = t.result.Baseline.Failures
	t.rec.OldDead = deadCredentials(t.rec.Baseline) && t.credentialsChanged()
	return nil
}

func firstOf(failures []Failure) error {
	if len(failures) == 0 {
		return nil
	}
	return failures[0]
}

func (t *transaction) prove(ctx context.Context, step Step, units []string) *Proof {
	var proof Proof
	_ = t.observed(ctx, step, "", "", t.cfg.Timeouts.Prove, func(ctx context.Context) error {
		proof = t.checks.Prober.Prove(ctx, units)
		return firstOf(proof.Failures)
	})
	return &proof
}

// credentialsChanged compares with what was last proven. Where that is not known, the credentials
// may well have changed.
func (t *transaction) credentialsChanged() bool {
	good, err := ReadKnownGood(t.cfg.Files)
	return err != nil || good == nil || good.CredentialsVersion != t.rec.CredentialsVersion
}

func (t *transaction) activeUnits() []string {
	var units []string
	for _, u := range t.rec.Units {
		if u.Active {
			units = append(units, u.Unit)
		}
	}
	return units
}

// begin consumes the approval, journals the intent, saves both states and arms the dead-man.
// Nothing of the host's own has changed when it returns.
func (t *transaction) begin(ctx context.Context, req Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.hist.use(t.rec.Attempt)
	if err := t.hist.write(t.cfg.Files); err != nil {
		return err
	}
	err := t.step(ctx, StepSave, "", t.cfg.Timeouts.Reload, func(context.Context) error {
		return saveContents(t.cfg.Files, t.rec.Changes, req.Plan.Actions, t.rec.Attempt)
	})
	if err != nil {
		return err
	}
	return t.arm(ctx)
}

// arm arms the dead-man, which only a change that restarts something needs: another one leaves
// every daemon as it is until somebody finishes it.
func (t *transaction) arm(ctx context.Context) error {
	if len(t.activeUnits()) == 0 {
		return nil
	}
	times, err := t.guardTimes(ctx)
	if err != nil {
		return err
	}
	err = t.step(ctx, StepTry, "", t.cfg.Timeouts.Reload, func(ctx context.Context) error {
		return t.cfg.Guard.Try(ctx, times)
	})
	if err != nil {
		return refusal(ReasonGuard, err, "the dead-man cannot be run on this host, so a failed change might not be undone")
	}
	return t.step(ctx, StepArm, "", t.cfg.Timeouts.Reload, func(ctx context.Context) error {
		return t.cfg.Guard.Arm(ctx, times)
	})
}

// guardTimes adds up the timeouts of every step and of the daemons. The dead-man looks once every
// daemon could have been restarted and a successor could have taken over; a process that is still
// at work then has the lock, and time enough to make the change and to undo it.
func (t *transaction) guardTimes(ctx context.Context) (GuardTimes, error) {
	limits := t.cfg.Timeouts
	var restarts time.Duration
	once := 2*limits.Reload + limits.Prove
	for _, unit := range t.activeUnits() {
		state, err := t.cfg.Units.State(ctx, unit)
		if err != nil {
			return GuardTimes{}, fmt.Errorf("asking systemd for the timeouts of %q: %w", unit, err)
		}
		restarts += limits.restart(state)
		once += limits.Ready + 2*limits.Creation + limits.StartLimit
	}
	once += restarts
	return GuardTimes{After: restarts + limits.Successor, Wait: 2 * once}, nil
}

// refuseOpening ends a transaction that could not even be opened.
func (t *transaction) refuseOpening(ctx context.Context, err error) Result {
	if ctx.Err() != nil {
		return t.interrupted(err)
	}
	var r *RefusedError
	if !errors.As(err, &r) {
		err = refusal(ReasonState, err, "the host could not be looked at")
	}
	t.result.Outcome, t.result.Err = Refused, err
	return t.result
}

// probeFailed ends a change whose desired proxy does not work. The approval is used up: it was for
// one try.
func (t *transaction) probeFailed(ctx context.Context, first Failure) Result {
	if ctx.Err() != nil {
		return t.interrupted(ctx.Err())
	}
	t.result.Outcome, t.result.Err = ProbeFailed, first
	t.hist.use(t.rec.Attempt)
	if err := t.hist.write(t.cfg.Files); err != nil {
		t.note("the attempt could not be recorded as used: %v", err)
	}
	return t.result
}

// abandon ends a change that failed before anything of the host's own was touched.
func (t *transaction) abandon(ctx context.Context, err error) Result {
	if ctx.Err() != nil {
		return t.interrupted(err)
	}
	var r *RefusedError
	if !errors.As(err, &r) {
		err = refusal(ReasonState, err, "the change could not be prepared")
	}
	t.rec.Outcome = Refused
	t.rec.First = err.Error()
	t.result.Outcome, t.result.Err = Refused, err
	t.tidy(ctx)
	return t.result
}

func (t *transaction) interrupted(err error) Result {
	t.result.Outcome, t.result.Err = Interrupted, err
	return t.result
}

func (t *transaction) note(format string, args ...any) {
	t.result.Notes = append(t.result.Notes, fmt.Sprintf(format, args...))
}
