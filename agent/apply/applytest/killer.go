package applytest

import (
	"context"
	"io/fs"

	"github.com/proxyward/proxyward/agent/apply"
)

// Moment is when, at a point, the process dies.
type Moment int

// The moments. During is, for what systemd was asked, after asking and before it was done; for the
// rest it is Before.
const (
	Before Moment = iota
	During
	After
)

// Killer counts everything that changes the host, or takes time, and dies at one of them.
type Killer struct {
	// At is the point to die at, counted from 1; 0 never.
	At     int
	Moment Moment
	// Die ends the process and does not return.
	Die func(point string)

	passed int
}

// Passed is how many points were passed.
func (k *Killer) Passed() int { return k.passed }

func (k *Killer) at(point string, during func(), do func() error) error {
	k.passed++
	hit := k.passed == k.At
	if hit && k.Moment != After {
		if k.Moment == During && during != nil {
			during()
		}
		k.Die(point)
	}
	err := do()
	if hit {
		k.Die(point)
	}
	return err
}

// Files wraps files.
func (k *Killer) Files(inner apply.Files) apply.Files { return mortalFiles{inner, k} }

type mortalFiles struct {
	apply.Files
	k *Killer
}

func (f mortalFiles) WriteFile(path string, content []byte, mode fs.FileMode) (changed bool, err error) {
	err = f.k.at("write "+path, nil, func() (err error) {
		changed, err = f.Files.WriteFile(path, content, mode)
		return err
	})
	return changed, err
}

func (f mortalFiles) Remove(path string) (removed bool, err error) {
	err = f.k.at("remove "+path, nil, func() (err error) {
		removed, err = f.Files.Remove(path)
		return err
	})
	return removed, err
}

func (f mortalFiles) MkdirAll(path string, mode fs.FileMode) error {
	return f.k.at("make directory "+path, nil, func() error { return f.Files.MkdirAll(path, mode) })
}

// HostUnits is all of systemd that the transaction and its dead-man use.
type HostUnits interface {
	apply.Units
	apply.DeadmanInstaller
	Stop(ctx context.Context, unit string) error
}

// Units wraps systemd. Queue leaves a job queued for a unit; nil where that is not possible.
func (k *Killer) Units(inner HostUnits, queue func(unit string) error) HostUnits {
	return mortalUnits{inner, queue, k}
}

type mortalUnits struct {
	HostUnits
	queue func(unit string) error
	k     *Killer
}

func (u mortalUnits) queued(unit string) func() {
	return func() {
		if u.queue != nil {
			_ = u.queue(unit) // a unit that has no jobs is then as Before
		}
	}
}

func (u mortalUnits) Reload(ctx context.Context) error {
	return u.k.at("reload", nil, func() error { return u.HostUnits.Reload(ctx) })
}

func (u mortalUnits) Restart(ctx context.Context, unit string) error {
	return u.k.at("restart "+unit, u.queued(unit), func() error { return u.HostUnits.Restart(ctx, unit) })
}

func (u mortalUnits) Start(ctx context.Context, unit string) error {
	return u.k.at("start "+unit, nil, func() error { return u.HostUnits.Start(ctx, unit) })
}

func (u mortalUnits) Stop(ctx context.Context, unit string) error {
	return u.k.at("stop "+unit, nil, func() error { return u.HostUnits.Stop(ctx, unit) })
}

func (u mortalUnits) ResetFailed(ctx context.Context, unit string) error {
	return u.k.at("reset "+unit, nil, func() error { return u.HostUnits.ResetFailed(ctx, unit) })
}

func (u mortalUnits) Enable(ctx context.Context, units ...string) error {
	return u.k.at("enable", nil, func() error { return u.HostUnits.Enable(ctx, units...) })
}

func (u mortalUnits) Disable(ctx context.Context, units ...string) error {
	return u.k.at("disable", nil, func() error { return u.HostUnits.Disable(ctx, units...) })
}

// Prober wraps a prober.
func (k *Killer) Prober(inner apply.Prober) apply.Prober { return mortalProber{inner, k} }

type mortalProber struct {
	apply.Prober
	k *Killer
}

func (p mortalProber) Ask(ctx context.Context) (proof apply.Proof) {
	_ = p.k.at("ask", nil, func() error { proof = p.Prober.Ask(ctx); return nil })
	return proof
}

func (p mortalProber) Prove(ctx context.Context, units []string) (proof apply.Proof) {
	_ = p.k.at("prove", nil, func() error { proof = p.Prober.Prove(ctx, units); return nil })
	return proof
}
