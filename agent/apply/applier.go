package apply

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Config is what a transaction needs of its host.
type Config struct {
	Files Files
	// Units is nil for a plain tree without systemd: files are changed and nothing is restarted.
	Units Units
	Lock  Locker
	// Clock defaults to SystemClock.
	Clock Clock
	// BootID of the running boot.
	BootID string
	// By names the caller in the journal: agent, bootstrap, remove, dead-man.
	By string
	// Guard undoes the change when nobody else does. Nil arms none.
	Guard Guard
	// Timeouts of the steps; each has a default.
	Timeouts Timeouts
	// Observe is told of progress; nil for nobody.
	Observe Observer
}

// Timeouts bound the steps.
type Timeouts struct {
	// Lock to wait for another transaction; default 10 s.
	Lock time.Duration
	// Reload and asking of systemd; default 90 s.
	Reload time.Duration
	// Restart of one daemon where systemd sets no limit of its own, and the most that is waited
	// where it does; default 5 min.
	Restart time.Duration
	// Ready until the daemon answers; default 60 s.
	Ready time.Duration
	// Creation until containers in creation are made; default 30 s.
	Creation time.Duration
	// Ask, and Prove each time; default 5 min.
	Ask, Prove time.Duration
	// StartLimit to wait for a start limit to pass rather than reset it; default 30 s.
	StartLimit time.Duration
	// Successor is how long the dead-man leaves a change to the next process; default 2 min.
	Successor time.Duration
}

func (t *Timeouts) setDefaults() {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&t.Lock, 10 * time.Second},
		{&t.Reload, 90 * time.Second},
		{&t.Restart, 5 * time.Minute},
		{&t.Ready, time.Minute},
		{&t.Creation, 30 * time.Second},
		{&t.Ask, 5 * time.Minute},
		{&t.Prove, 5 * time.Minute},
		{&t.StartLimit, 30 * time.Second},
		{&t.Successor, 2 * time.Minute},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
}

// Applier makes changes to one host.
type Applier struct {
	cfg Config
}

// New returns an Applier, or says what the configuration lacks.
func New(cfg Config) (*Applier, error) {
	switch {
	case cfg.Files == nil, cfg.Lock == nil:
		return nil, errors.New("making an applier: it needs files and a lock")
	case cfg.BootID == "":
		return nil, errors.New("making an applier: the boot ID is not known; read /proc/sys/kernel/random/boot_id")
	}
	if cfg.Units == nil {
		cfg.Units = noUnits{}
	}
	if cfg.Clock == nil {
		cfg.Clock = SystemClock{}
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	if cfg.Guard == nil {
		cfg.Guard = noGuard{}
	}
	cfg.Timeouts.setDefaults()
	return &Applier{cfg: cfg}, nil
}

// noGuard is armed by nobody.
type noGuard struct{}

func (noGuard) Try(context.Context, GuardTimes) error { return nil }
func (noGuard) Arm(context.Context, GuardTimes) error { return nil }
func (noGuard) Disarm(context.Context) error          { return nil }

// noUnits stands for systemd where there is none: a plain tree. No unit is known in it.
type noUnits struct{}

func (noUnits) State(context.Context, string) (UnitState, error) {
	return UnitState{Load: "not-found", Active: "inactive"}, nil
}
func (noUnits) Reload(context.Context) error              { return nil }
func (noUnits) ResetFailed(context.Context, string) error { return nil }
func (noUnits) Start(_ context.Context, unit string) error {
	return fmt.Errorf("starting %q: there is no systemd", unit)
}
func (noUnits) Restart(_ context.Context, unit string) error {
	return fmt.Errorf("restarting %q: there is no systemd", unit)
}

// lock takes the lock, waiting a bounded time.
func (a *Applier) lock(ctx context.Context) (func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeouts.Lock)
	defer cancel()
	return a.cfg.Lock.Lock(ctx)
}

// Journal returns the journal of the last transaction, or nil. It takes no lock, since a journal
// is replaced as a whole.
func (a *Applier) Journal() (*Record, error) { return ReadJournal(a.cfg.Files) }

// Apply makes the change or leaves the host as it was. When the context ends mid-way the journal
// stays open: the change is not undone, and whoever comes next finishes it with Recover, or the
// dead-man undoes it.
func (a *Applier) Apply(ctx context.Context, req Request) Result {
	if len(req.Plan.Actions) == 0 && req.Plan.Refused == "" {
		return Result{Outcome: Unchanged, Attempt: req.attempt()}
	}
	release, err := a.lock(ctx)
	if err != nil {
		return refused(req.attempt(), refusal(ReasonBusy, err, "another transaction holds the lock"))
	}
	return underLock(release, func() Result { return a.applyLocked(ctx, req) })
}

// underLock does something and releases the lock, also when it panics.
func underLock(release func() error, do func() Result) (result Result) {
	defer func() {
		if err := release(); err != nil {
			// The lock ends with the process at the latest; the change itself is what it is.
			result.Notes = append(result.Notes, fmt.Sprintf("releasing the lock: %v", err))
		}
	}()
	return do()
}

func refused(attempt string, err error) Result {
	return Result{Outcome: Refused, Attempt: attempt, Err: err}
}

func (a *Applier) applyLocked(ctx context.Context, req Request) Result {
	last, err := ReadJournal(a.cfg.Files)
	if err != nil {
		return refused(req.attempt(), refusal(ReasonState, err, "the journal cannot be read"))
	}
	if last != nil && last.Step.decided() {
		// Only tidying was left, which asks for nobody's judgement.
		a.recoverLocked(ctx, Recovery{})
		if last, err = ReadJournal(a.cfg.Files); err != nil {
			return refused(req.attempt(), refusal(ReasonState, err, "the journal cannot be read"))
		}
	}
	if last != nil && !last.Finished() {
		return refused(req.attempt(), refusal(ReasonUnfinished, nil, "attempt %q stands at step %q; recover it first", last.Attempt, last.Step))
	}
	hist, err := readHistory(a.cfg.Files)
	if err != nil {
		return refused(req.attempt(), refusal(ReasonState, err, "the history of attempts cannot be read"))
	}
	if err := req.admit(a.cfg.BootID, hist.used); err != nil {
		return refused(req.attempt(), err)
	}
	t := &transaction{Applier: a, checks: req.Checks, hist: hist}
	t.result.Attempt = req.attempt()
	if err := t.open(ctx, req); err != nil {
		return t.refuseOpening(ctx, err)
	}
	if failures := t.ask(ctx); len(failures) > 0 {
		return t.probeFailed(ctx, failures[0])
	}
	if err := t.begin(ctx, req); err != nil {
		return t.abandon(ctx, err)
	}
	return t.forward(ctx)
}
