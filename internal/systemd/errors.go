package systemd

import (
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// NotRunningError says that a unit was left alone because it does not run.
type NotRunningError struct {
	Unit string
	// ActiveState that it has.
	ActiveState string
}

// Error implements error.
func (e *NotRunningError) Error() string {
	return fmt.Sprintf("restarting %q: it is %s, and a stopped unit stays stopped; it takes its environment when it is started", e.Unit, e.ActiveState)
}

// JobFailedError says that systemd ended a job without success, or that the unit failed after it.
type JobFailedError struct {
	// Verb that was asked for: restarting, starting, stopping.
	Verb, Unit string
	// JobResult is failed, canceled, timeout, dependency, …; "" when systemd's word was missed.
	JobResult string
	// ServiceResult is exit-code, signal, timeout, resources, …
	ServiceResult  string
	ExecMainStatus int
}

// Error implements error.
func (e *JobFailedError) Error() string {
	return fmt.Sprintf("%s %q: systemd's job ended %q, the service's result is %q with status %d; see journalctl -u %s",
		e.Verb, e.Unit, e.JobResult, e.ServiceResult, e.ExecMainStatus, e.Unit)
}

// StartLimitError says that systemd refuses further starts for now.
type StartLimitError struct {
	Verb, Unit string
	Burst      uint32
	Interval   string
}

// Error implements error.
func (e *StartLimitError) Error() string {
	return fmt.Sprintf("%s %q: its start limit is hit (%d starts in %s); wait, or run systemctl reset-failed %s",
		e.Verb, e.Unit, e.Burst, e.Interval, e.Unit)
}

// TimeoutError says that the proof did not come in time. What happens to the unit afterwards is
// not known.
type TimeoutError struct {
	Verb, Unit string
	// Missing is what was still waited for.
	Missing string
	// Last state that was seen.
	Last Unit
	// Cause is context.DeadlineExceeded or context.Canceled.
	Cause error
}

// Error implements error.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s %q: still waiting for %s when the time was over; it is %s/%s with main process %d (%v)",
		e.Verb, e.Unit, e.Missing, e.Last.ActiveState, e.Last.SubState, e.Last.MainPID, e.Cause)
}

// Unwrap gives the cause.
func (e *TimeoutError) Unwrap() error { return e.Cause }

// ErrNoSuchUnit says that systemd has no such unit.
var ErrNoSuchUnit = errors.New("no such unit")

// unitError gives ErrNoSuchUnit to systemd's error of that name.
func unitError(verb, unit string, err error) error {
	var dbusErr dbus.Error
	if errors.As(err, &dbusErr) && dbusErr.Name == "org.freedesktop.systemd1.NoSuchUnit" {
		return fmt.Errorf("%s %q: %w", verb, unit, ErrNoSuchUnit)
	}
	return fmt.Errorf("%s %q: %w", verb, unit, err)
}
