package systemd

import (
	"context"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
)

// RestartOptions bound a restart.
type RestartOptions struct {
	// Timeout of the whole; default 3 minutes, the sum of systemd's default stop and start timeouts.
	Timeout time.Duration
	// Settle is how long the new process must stay. Default 0 for Type=notify, whose job ends only
	// when the daemon says that it is ready, and 1 second for other types, whose job ends when
	// the process was spawned or forked.
	Settle time.Duration
}

// Proof shows that a restart gave a new process.
type Proof struct {
	Unit                               string
	PreviousInvocationID, InvocationID string
	PreviousMainPID, MainPID           int
	// Duration from asking to the new process being active, without settling.
	Duration time.Duration
}

// pollInterval is how often a unit is looked at while its job runs. Signals alone would not do:
// one can be lost when systemd re-executes itself.
const pollInterval = 100 * time.Millisecond

// Restart restarts a running unit (TryRestartUnit: a stopped one stays stopped and gives
// *NotRunningError) and waits for proof: the job ended, the InvocationID and the main process are
// new, the unit is active, no job is queued, and it stays so for the settling time. Other errors
// are *JobFailedError, *StartLimitError and *TimeoutError.
func (m *Manager) Restart(ctx context.Context, unit string, opts RestartOptions) (Proof, error) {
	const verb = "restarting"
	if opts.Timeout == 0 {
		opts.Timeout = 3 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()

	before, err := m.Show(ctx, unit)
	if err != nil {
		return Proof{}, err
	}
	if !before.Running() {
		return Proof{}, &NotRunningError{Unit: unit, ActiveState: before.ActiveState}
	}
	began := time.Now()
	w := waiter{verb: verb, unit: unit, show: m.show(unit), done: func(u Unit) string { return missingAfterRestart(before, u) }}
	after, err := m.runJob(ctx, w, (*sdbus.Conn).TryRestartUnitContext)
	if err != nil {
		return Proof{}, err
	}
	proof := Proof{
		Unit:                 unit,
		PreviousInvocationID: before.InvocationID, InvocationID: after.InvocationID,
		PreviousMainPID: before.MainPID, MainPID: after.MainPID,
		Duration: time.Since(began),
	}
	if opts.Settle == 0 && after.Type != "notify" && after.Type != "notify-reload" {
		opts.Settle = time.Second
	}
	return proof, w.settle(ctx, after, opts.Settle)
}

// Start starts a unit and waits until it is active (or, for a oneshot, has ended well).
func (m *Manager) Start(ctx context.Context, unit string) error {
	_, err := m.runJob(ctx, waiter{verb: "starting", unit: unit, show: m.show(unit), done: missingAfterStart}, (*sdbus.Conn).StartUnitContext)
	return err
}

// Stop stops a unit and waits until it has stopped. A unit that does not run is no error.
func (m *Manager) Stop(ctx context.Context, unit string) error {
	_, err := m.runJob(ctx, waiter{verb: "stopping", unit: unit, show: m.show(unit), done: missingAfterStop}, (*sdbus.Conn).StopUnitContext)
	return err
}

// show binds Show to a unit.
func (m *Manager) show(unit string) func(context.Context) (Unit, error) {
	return func(ctx context.Context) (Unit, error) { return m.Show(ctx, unit) }
}

// startJob is one of the library's methods that queue a job.
type startJob func(conn *sdbus.Conn, ctx context.Context, unit, mode string, ch chan<- string) (int, error)

// runJob queues a job and waits for it.
func (m *Manager) runJob(ctx context.Context, w waiter, start startJob) (Unit, error) {
	// The library sends to it while holding a lock that the next job needs: room for one.
	results := make(chan string, 1)
	err := m.call(ctx, func(ctx context.Context, conn *sdbus.Conn) error {
		_, err := start(conn, ctx, w.unit, "replace", results)
		return err
	})
	if err != nil {
		return Unit{}, unitError(w.verb, w.unit, err)
	}
	return w.wait(ctx, results)
}

// missingAfterRestart says what a restart still lacks, "" when nothing.
func missingAfterRestart(before, now Unit) string {
	switch {
	case now.JobID != 0:
		return "its job to end"
	case now.InvocationID == before.InvocationID:
		return "a new invocation"
	case now.ActiveState != "active":
		return "the unit to be active"
	case now.MainPID == 0 || now.MainPID == before.MainPID:
		return "a new main process"
	}
	return ""
}

func missingAfterStart(now Unit) string {
	switch {
	case now.JobID != 0:
		return "its job to end"
	case now.ActiveState == "active", now.ActiveState == "reloading", now.ActiveState == "refreshing",
		now.Type == "oneshot" && now.ActiveState == "inactive" && now.Result == "success":
		return ""
	}
	return "the unit to be active"
}

func missingAfterStop(now Unit) string {
	switch {
	case now.JobID != 0:
		return "its job to end"
	case now.ActiveState == "inactive", now.ActiveState == "failed":
		return ""
	}
	return "the unit to be inactive"
}
