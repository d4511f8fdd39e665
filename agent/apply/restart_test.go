package apply_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/agent/apply/applytest"
	"github.com/proxyward/proxyward/runtimes"
)

// countingUnits counts what is asked of systemd.
type countingUnits struct {
	applytest.HostUnits
	restarts, starts, resets int
}

func (c *countingUnits) Restart(ctx context.Context, unit string) error {
	c.restarts++
	return c.HostUnits.Restart(ctx, unit)
}

func (c *countingUnits) Start(ctx context.Context, unit string) error {
	if unit == containerd || unit == docker {
		c.starts++
	}
	return c.HostUnits.Start(ctx, unit)
}

func (c *countingUnits) ResetFailed(ctx context.Context, unit string) error {
	c.resets++
	return c.HostUnits.ResetFailed(ctx, unit)
}

func TestC30_StartLimitUsedUpByOthers(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	units := &countingUnits{HostUnits: h.model}
	p.units = units
	h.model.StartLimitBurst, h.model.ForeignStarts = 3, 2
	req := change("http://new:3128")
	req.Prober = p.prober
	got := h.applier(t, p).Apply(t.Context(), req)
	wantOutcome(t, got, apply.Done)
	if units.restarts != 2 || units.starts != 1 || units.resets != 1 {
		t.Errorf("%d restarts, %d starts, %d resets", units.restarts, units.starts, units.resets)
	}
}

func TestC30_StartLimitThatNeverPassesEnds(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	units := &countingUnits{HostUnits: &limited{HostUnits: h.model, unit: containerd}}
	p.units = units
	got := h.applier(t, p).Apply(t.Context(), change("http://new:3128"))
	wantOutcome(t, got, apply.UndoFailed)
	// Once for the change and once for the undo.
	if units.restarts > 2 || units.starts > 2 || units.resets > 2 {
		t.Errorf("%d restarts, %d starts, %d resets", units.restarts, units.starts, units.resets)
	}
}

// limited is a systemd that never lets a unit start again.
type limited struct {
	applytest.HostUnits
	unit string
	hit  bool
}

func (l *limited) Restart(ctx context.Context, unit string) error {
	if unit != l.unit {
		return l.HostUnits.Restart(ctx, unit)
	}
	l.hit = true
	return errDown
}

func (l *limited) Start(ctx context.Context, unit string) error {
	if unit != l.unit {
		return l.HostUnits.Start(ctx, unit)
	}
	return errDown
}

func (l *limited) State(ctx context.Context, unit string) (apply.UnitState, error) {
	state, err := l.HostUnits.State(ctx, unit)
	if unit == l.unit && l.hit {
		state.Active, state.Result = "failed", "start-limit-hit"
	}
	return state, err
}

var errDown = errors.New("start request repeated too quickly")

func TestC30_OwnHistoryWaits(t *testing.T) {
	h := newHost(t, scratch(t))
	a := h.applier(t, h.parts())
	for i := range 3 {
		req := change("http://new:3128")
		req.Attempt = string(rune('a' + i))
		wantOutcome(t, a.Apply(t.Context(), req), apply.Done)
		h.clock.now = h.clock.now.Add(time.Second)
	}
	p := h.parts()
	units := &countingUnits{HostUnits: h.model}
	p.units = units
	h.model.StartLimitBurst = 4 // three are used, and an undo must have one left
	if err := h.model.ResetFailed(t.Context(), containerd); err != nil {
		t.Fatal(err)
	}
	if err := h.model.ResetFailed(t.Context(), docker); err != nil {
		t.Fatal(err)
	}
	h.clock.slept = 0
	req := change("http://new:3128")
	req.Attempt = "d"
	wantOutcome(t, h.applier(t, p).Apply(t.Context(), req), apply.Done)
	// The window is 10 s and the first restart 3 s ago.
	if h.clock.slept != 7*time.Second {
		t.Errorf("waited %s", h.clock.slept)
	}
	if units.resets != 0 {
		t.Errorf("%d resets", units.resets)
	}
}

// fakeDaemons has containers in creation until a number of looks.
type fakeDaemons struct {
	creating map[int][]string // by look, the last for ever after
	looks    int
	ready    error
}

func (d *fakeDaemons) Ready(context.Context, runtimes.Runtime) (string, error) { return "1.7", d.ready }

func (d *fakeDaemons) Creating(context.Context, runtimes.Runtime) ([]string, error) {
	d.looks++
	best := 0
	for look := range d.creating {
		if look <= d.looks && look > best {
			best = look
		}
	}
	return slices.Clone(d.creating[best]), nil
}

func checked(d apply.Daemons) apply.Request {
	req := change("http://new:3128")
	req.Daemons = d
	req.Runtimes = []runtimes.Runtime{{Unit: containerd, Target: "Containerd"}}
	return req
}

func TestC44_ContainersInCreation(t *testing.T) {
	const never = 1 << 30
	for _, tc := range []struct {
		name     string
		creating map[int][]string
		want     apply.Outcome
	}{
		{"none", nil, apply.Done},
		{"made before the restart", map[int][]string{1: {"a"}, 3: nil}, apply.Done},
		// It is looked at every 250 ms for 30 s before the restart: 121 looks.
		{"made after the restart", map[int][]string{1: {"a"}, 130: nil}, apply.Done},
		{"others begin after the restart", map[int][]string{1: {"a"}, 122: {"b"}}, apply.Done},
		{"stuck", map[int][]string{1: {"a"}, never: nil}, apply.RolledBack},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHost(t, scratch(t))
			got := h.applier(t, h.parts()).Apply(t.Context(), checked(&fakeDaemons{creating: tc.creating}))
			wantOutcome(t, got, tc.want)
			var stuck *apply.StuckError
			if errors.As(got.Err, &stuck) != (tc.want == apply.RolledBack) {
				t.Errorf("error %v", got.Err)
			}
		})
	}
}

func TestApply_DaemonThatDoesNotAnswerIsUndone(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	got := h.applier(t, h.parts()).Apply(t.Context(), checked(&fakeDaemons{ready: errDown}))
	wantOutcome(t, got, apply.RolledBack)
	if !errors.Is(got.Err, errDown) {
		t.Errorf("error %v", got.Err)
	}
	same(t, "the host", before, h.snapshot(t))
}

// fakeJudge finds fault with what is loaded or running.
type fakeJudge struct{ loaded, running error }

func (j fakeJudge) Loaded(context.Context, string) error  { return j.loaded }
func (j fakeJudge) Running(context.Context, string) error { return j.running }

func TestApply_JudgeIsHeard(t *testing.T) {
	for _, judge := range []fakeJudge{{loaded: errDown}, {running: errDown}} {
		h := newHost(t, scratch(t))
		before := h.snapshot(t)
		invocation := h.process(t, containerd).InvocationID
		req := change("http://new:3128")
		req.Judge = judge
		got := h.applier(t, h.parts()).Apply(t.Context(), req)
		wantOutcome(t, got, apply.RolledBack)
		if !errors.Is(got.Err, errDown) {
			t.Errorf("error %v", got.Err)
		}
		same(t, "the host", before, h.snapshot(t))
		if restarted := h.process(t, containerd).InvocationID != invocation; restarted != (judge.loaded == nil) {
			t.Errorf("restarted: %t", restarted)
		}
	}
}

func TestApply_DropInThatSystemdDoesNotLoadIsUndone(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	p := h.parts()
	p.units = blind{h.model}
	got := h.applier(t, p).Apply(t.Context(), change("http://new:3128"))
	// The undo compares too, and the previous drop-in is not loaded either.
	wantOutcome(t, got, apply.UndoFailed)
	var loaded *apply.LoadedError
	if !errors.As(got.Err, &loaded) || loaded.Unit != containerd {
		t.Errorf("error %v", got.Err)
	}
	wantOutcome(t, h.plainApplier(t).RunDeadman(t.Context(), 0), apply.RolledBack)
	same(t, "the host", before, h.snapshot(t))
}

// blind is a systemd in whose eyes there are no drop-ins.
type blind struct{ applytest.HostUnits }

func (b blind) State(ctx context.Context, unit string) (apply.UnitState, error) {
	state, err := b.HostUnits.State(ctx, unit)
	state.DropInPaths = nil
	return state, err
}
