package apply

import (
	"context"
	"time"

	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/systemd"
)

// Systemd gives a host's systemd to a transaction.
type Systemd struct {
	Manager *systemd.Manager
}

// State implements Units.
func (s Systemd) State(ctx context.Context, unit string) (UnitState, error) {
	u, err := s.Manager.Show(ctx, unit)
	if err != nil {
		return UnitState{}, err
	}
	return UnitState{
		Load: u.LoadState, Active: u.ActiveState, Result: u.Result,
		InvocationID: u.InvocationID, DropInPaths: u.DropInPaths, Job: u.JobID != 0,
		StartLimitBurst: u.StartLimitBurst, StartLimitWindow: u.StartLimitInterval,
		StartTimeout: u.StartTimeout, StopTimeout: u.StopTimeout,
	}, nil
}

// Reload implements Units.
func (s Systemd) Reload(ctx context.Context) error { return s.Manager.Reload(ctx) }

// Restart implements Units. The context's deadline bounds it.
func (s Systemd) Restart(ctx context.Context, unit string) error {
	var opts systemd.RestartOptions
	if deadline, ok := ctx.Deadline(); ok {
		opts.Timeout = time.Until(deadline)
	}
	_, err := s.Manager.Restart(ctx, unit, opts)
	return err
}

// Start implements Units.
func (s Systemd) Start(ctx context.Context, unit string) error { return s.Manager.Start(ctx, unit) }

// ResetFailed implements Units.
func (s Systemd) ResetFailed(ctx context.Context, unit string) error {
	return s.Manager.ResetFailed(ctx, unit)
}

// HostLock is the lock on a host's tree.
type HostLock struct {
	Root *hostfs.Root
	// Verb that holds it, for the message of whoever waits.
	Verb string
}

// Lock implements Locker.
func (l HostLock) Lock(ctx context.Context) (func() error, error) {
	lock, err := l.Root.Lock(ctx, hostfs.LockPath, l.Verb)
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}
