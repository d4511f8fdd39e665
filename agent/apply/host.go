package apply

import (
	"context"
	"io/fs"
	"time"

	"github.com/proxyward/proxyward/runtimes"
)

// Reader reads the host's tree by absolute path.
type Reader interface {
	ReadFile(path string) ([]byte, error)
	// Lstat does not follow a symbolic link in the last element.
	Lstat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.DirEntry, error)
}

// Writer changes the host's tree by absolute path. Each method is durable when it returns.
type Writer interface {
	// WriteFile replaces a regular file atomically, making missing directories; it refuses any
	// other kind of target.
	WriteFile(path string, content []byte, mode fs.FileMode) (changed bool, err error)
	// Remove removes a file or an empty directory. What is not there is no error.
	Remove(path string) (removed bool, err error)
	// MkdirAll makes a directory with the mode, and its missing parents.
	MkdirAll(path string, mode fs.FileMode) error
}

// Files is the host's tree.
type Files interface {
	Reader
	Writer
}

// UnitState is what systemd says of one unit.
type UnitState struct {
	// Load is loaded, not-found, masked, …
	Load string
	// Active is active, activating, inactive, failed, …
	Active string
	// Result of the last run: success, exit-code, start-limit-hit, …
	Result       string
	InvocationID string
	DropInPaths  []string
	// Job says that a job is queued for the unit.
	Job bool
	// StartLimitBurst starts are allowed in StartLimitWindow; 0 of either is no limit.
	StartLimitBurst  uint32
	StartLimitWindow time.Duration
	// StartTimeout and StopTimeout; 0 is no limit.
	StartTimeout, StopTimeout time.Duration
}

// UnitReader asks systemd.
type UnitReader interface {
	State(ctx context.Context, unit string) (UnitState, error)
	// Reload is systemd's daemon-reload; it returns when everything was read again.
	Reload(ctx context.Context) error
}

// UnitRunner changes what runs. Start and Restart return when the job is done and the unit is
// active under a new InvocationID with no job queued, and fail otherwise.
type UnitRunner interface {
	// Restart restarts a unit that is not stopped, and starts none that is.
	Restart(ctx context.Context, unit string) error
	Start(ctx context.Context, unit string) error
	// ResetFailed forgets a failure and the starts counted against the unit's limit.
	ResetFailed(ctx context.Context, unit string) error
}

// Units is systemd.
type Units interface {
	UnitReader
	UnitRunner
}

// Locker gives the one lock that agent, bootstrap, remove and dead-man share.
type Locker interface {
	// Lock waits until the context ends, and tries once when it has ended already. A lock that is
	// still taken then is a *hostfs.LockedError.
	Lock(ctx context.Context) (release func() error, err error)
}

// Clock tells the time and waits.
type Clock interface {
	Now() time.Time
	// Sleep returns early, with the context's error, when the context ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Guard undoes the change when nobody else does: the dead-man.
type Guard interface {
	// Try installs it and has systemd run it once, to see that it would work. Nothing is armed.
	Try(ctx context.Context, times GuardTimes) error
	// Arm starts its time.
	Arm(ctx context.Context, times GuardTimes) error
	// Disarm removes every trace of it; it may be called at any time.
	Disarm(ctx context.Context) error
}

// GuardTimes follow from the timeouts of the change and of the daemons that it restarts.
type GuardTimes struct {
	// After is when it looks whether the change was left unfinished, from arming and from a boot.
	After time.Duration
	// Wait is how long it then waits for a process that is still making or undoing the change.
	Wait time.Duration
}

// Judge compares units with what the change wants of them.
type Judge interface {
	// Loaded fails when systemd has loaded something else than the files say.
	Loaded(ctx context.Context, unit string) error
	// Running fails when the daemon's process has another environment than the desired one.
	Running(ctx context.Context, unit string) error
}

// Daemons asks the runtimes themselves.
type Daemons interface {
	// Ready waits until the daemon answers on its socket, and returns its version.
	Ready(ctx context.Context, runtime runtimes.Runtime) (version string, err error)
	// Creating lists the containers and sandboxes that are being created.
	Creating(ctx context.Context, runtime runtimes.Runtime) ([]string, error)
}

// Prober asks before the change and proves after it.
type Prober interface {
	// Ask walks the proxy and the registries with the desired environment, from this process.
	Ask(ctx context.Context) Proof
	// Prove pulls the canaries through the daemons of these units, with whatever environment they
	// run with.
	Prove(ctx context.Context, units []string) Proof
}
