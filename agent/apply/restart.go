package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/proxyward/proxyward/runtimes"
)

// How often something that settles by itself is looked at again.
const settlePoll = 250 * time.Millisecond

const startLimitHit = "start-limit-hit"

// restart is how long one restart may take: systemd's own limits for the unit with a margin, and
// never more than Restart.
func (l Timeouts) restart(state UnitState) time.Duration {
	if state.StartTimeout <= 0 || state.StopTimeout <= 0 ||
		state.StartTimeout >= l.Restart || state.StopTimeout >= l.Restart {
		return l.Restart
	}
	return min(l.Restart, state.StartTimeout+state.StopTimeout+15*time.Second)
}

// restart restarts one unit, unless the journal shows that it was restarted for this change.
func (t *transaction) restart(ctx context.Context, u *UnitRecord) error {
	state, err := t.settled(ctx, u.Unit)
	if err != nil {
		return &RestartError{Unit: u.Unit, Err: err}
	}
	limit := t.cfg.Timeouts.restart(state)
	if u.Replaced != nil && state.InvocationID != *u.Replaced {
		if state.up() {
			return nil
		}
		return &RestartError{Unit: u.Unit, Err: fmt.Errorf("it is %s after its restart, with result %q", state.Active, state.Result)}
	}
	if u.Replaced == nil {
		if err := t.quiesce(ctx, u); err != nil {
			return err
		}
	}
	if err := t.mindStartLimit(ctx, u.Unit, state); err != nil {
		return err
	}
	replaced := state.InvocationID
	u.Replaced = &replaced
	if err := t.enter(ctx, StepRestart, u.Unit); err != nil {
		return err
	}
	if err := t.countRestart(u.Unit); err != nil {
		return err
	}
	err = t.observed(ctx, StepRestart, u.Unit, t.effect(u.Unit), limit, func(ctx context.Context) error {
		return t.restartOnce(ctx, u.Unit)
	})
	if err != nil {
		return &RestartError{Unit: u.Unit, Err: err}
	}
	t.result.Restarted = append(t.result.Restarted, u.Unit)
	return nil
}

// restartOnce restarts, and where somebody else's starts have used up the unit's limit, so that
// the daemon is down now, forgets them once and starts it.
func (t *transaction) restartOnce(ctx context.Context, unit string) error {
	failure := t.cfg.Units.Restart(ctx, unit)
	if failure == nil {
		return nil
	}
	state, err := t.cfg.Units.State(ctx, unit)
	if err != nil || state.Result != startLimitHit {
		return failure
	}
	t.note("the start limit of %q was used up by others; it was reset once", unit)
	if err := t.cfg.Units.ResetFailed(ctx, unit); err != nil {
		return err
	}
	return t.cfg.Units.Start(ctx, unit)
}

// mindStartLimit keeps our own restarts, and the one that an undo would need, below the unit's
// start limit: it waits where that is short, and otherwise resets the count once.
func (t *transaction) mindStartLimit(ctx context.Context, unit string, state UnitState) error {
	wait, used := t.hist.limitUsed(t.cfg.BootID, unit, state, t.cfg.Clock.Now())
	if !used {
		return nil
	}
	if wait <= t.cfg.Timeouts.StartLimit {
		t.note("waited %s for the start limit of %q", wait, unit)
		return t.cfg.Clock.Sleep(ctx, wait)
	}
	t.note("the start limit of %q is used up by our own restarts; it was reset once", unit)
	if err := t.cfg.Units.ResetFailed(ctx, unit); err != nil {
		return &RestartError{Unit: unit, Err: fmt.Errorf("resetting its start limit: %w", err)}
	}
	return nil
}

func (t *transaction) countRestart(unit string) error {
	t.hist.restarted(t.cfg.BootID, unit, t.cfg.Clock.Now())
	return t.hist.write(t.cfg.Files)
}

// effect says what the restart does to containers.
func (t *transaction) effect(unit string) string {
	runtime, known := t.checks.runtime(unit)
	switch {
	case !known:
		return ""
	case runtime.Restart.KillsContainers == runtimes.True:
		return "running containers are killed: " + runtime.Restart.Why
	case runtime.Restart.KillsContainers == runtimes.Unknown:
		return "whether running containers survive is not known: " + runtime.Restart.Why
	default:
		return "running containers survive: " + runtime.Restart.Why
	}
}

// settled waits until no job is queued for the unit and it is not stopping, for no longer than a
// restart may take; then it is what it is.
func (t *transaction) settled(ctx context.Context, unit string) (UnitState, error) {
	state, err := t.cfg.Units.State(ctx, unit)
	if err != nil {
		return state, err
	}
	until := t.cfg.Clock.Now().Add(t.cfg.Timeouts.restart(state))
	for (state.Job || state.Active == "deactivating") && t.cfg.Clock.Now().Before(until) {
		if err := t.cfg.Clock.Sleep(ctx, settlePoll); err != nil {
			return state, err
		}
		if state, err = t.cfg.Units.State(ctx, unit); err != nil {
			return state, err
		}
	}
	return state, nil
}

// quiesce waits a little until no container is in creation, and notes those that still are: they
// are looked at again after the restart.
func (t *transaction) quiesce(ctx context.Context, u *UnitRecord) error {
	runtime, known := t.checks.runtime(u.Unit)
	if t.checks.Daemons == nil || !known {
		return nil
	}
	creating, err := t.creationEnds(ctx, runtime, nil)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		// A daemon that does not answer creates nothing; its restart may be what helps.
		t.note("which containers %q is creating could not be asked: %v", u.Unit, err)
		return nil
	}
	u.Creating = creating
	return nil
}

// noneStuck waits until the containers that were in creation at the restart no longer are.
func (t *transaction) noneStuck(ctx context.Context, u *UnitRecord, runtime runtimes.Runtime) error {
	if len(u.Creating) == 0 {
		return nil
	}
	stuck, err := t.creationEnds(ctx, runtime, u.Creating)
	if err != nil {
		return &RestartError{Unit: u.Unit, Err: fmt.Errorf("asking for containers in creation: %w", err)}
	}
	if len(stuck) > 0 {
		return &StuckError{Unit: u.Unit, IDs: stuck}
	}
	return nil
}

// creationEnds waits, for Timeouts.Creation, until none of these containers (nil: none at all) is
// in creation, and returns those that still are.
func (t *transaction) creationEnds(ctx context.Context, runtime runtimes.Runtime, among []string) ([]string, error) {
	until := t.cfg.Clock.Now().Add(t.cfg.Timeouts.Creation)
	for {
		creating, err := t.checks.Daemons.Creating(ctx, runtime)
		if err != nil {
			return nil, err
		}
		if among != nil {
			creating = slices.DeleteFunc(creating, func(id string) bool { return !slices.Contains(among, id) })
		}
		if len(creating) == 0 || !t.cfg.Clock.Now().Before(until) {
			return creating, nil
		}
		if err := t.cfg.Clock.Sleep(ctx, settlePoll); err != nil {
			return nil, err
		}
	}
}
