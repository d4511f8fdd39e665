package apply_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/agent/apply/applytest"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/runtimes"
)

func same(t *testing.T, what string, want, got applytest.Snapshot) {
	t.Helper()
	if !maps.Equal(want, got) {
		t.Errorf("%s:\nwant %v\n got %v", what, want, got)
	}
}

func wantOutcome(t *testing.T, got apply.Result, want apply.Outcome) {
	t.Helper()
	if got.Outcome != want {
		t.Fatalf("outcome %s (%v; undo: %v; notes %q), want %s", got.Outcome, got.Err, got.UndoErr, got.Notes, want)
	}
}

func (h *host) process(t *testing.T, unit string) applytest.Process {
	t.Helper()
	p, err := h.model.Process(unit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestApply_Done(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	var steps []apply.Step
	p.events = func(e apply.Event) {
		if e.Ended {
			steps = append(steps, e.Step)
		}
	}
	req := change("http://new:3128")
	req.Prober = p.prober
	got := h.applier(t, p).Apply(t.Context(), req)
	wantOutcome(t, got, apply.Done)
	if got.Err != nil || !slices.Equal(got.Restarted, []string{containerd, docker}) {
		t.Errorf("err %v, restarted %q", got.Err, got.Restarted)
	}
	for _, unit := range []string{containerd, docker} {
		if env := h.process(t, unit).Environ; env != "HTTPS_PROXY=http://new:3128\n" {
			t.Errorf("%s runs with %q", unit, env)
		}
	}
	want := []apply.Step{
		apply.StepAsk, apply.StepBaseline, apply.StepSave, apply.StepTry, apply.StepArm, apply.StepWrite,
		apply.StepReload, apply.StepRestart, apply.StepRestart, apply.StepProve, apply.StepCommit,
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	snap := h.snapshot(t)
	if snap["known good"] != "rev-2 secret/2" || snap["journal"] != "closed" || snap["dead-man enabled"] != "false" {
		t.Errorf("afterwards: %v", snap)
	}
	rec, err := h.applier(t, p).Journal()
	if err != nil || rec.Outcome != apply.Done || rec.By != "agent" {
		t.Errorf("journal %+v, %v", rec, err)
	}
}

func TestC27_NothingToDoRestartsNothing(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	before := h.process(t, containerd)
	wantOutcome(t, h.applier(t, p).Apply(t.Context(), apply.Request{Attempt: "a", Local: true}), apply.Unchanged)
	wantOutcome(t, h.applier(t, p).Recover(t.Context(), apply.Recovery{Forward: true}), apply.Unchanged)
	if after := h.process(t, containerd); after.InvocationID != before.InvocationID {
		t.Error("the daemon was restarted")
	}
	if _, err := h.root.Stat(apply.JournalPath); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal was written: %v", err)
	}
}

func TestApply_RepairWithoutRestartNeedsNoApproval(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	req := change("http://old:3128")
	req.Local = false
	req.Plan.Actions = req.Plan.Actions[:2]
	before := h.process(t, containerd)
	wantOutcome(t, h.applier(t, p).Apply(t.Context(), req), apply.Done)
	if h.process(t, containerd).InvocationID != before.InvocationID {
		t.Error("the daemon was restarted")
	}
	if info, err := h.root.Stat(dropIn); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the drop-in was not repaired: %v, %v", info, err)
	}
}

func TestApply_PlainTree(t *testing.T) {
	h := newHost(t, scratch(t))
	a, err := apply.New(apply.Config{Files: h.root, Lock: apply.HostLock{Root: h.root, Verb: "bootstrap"}, BootID: "b"})
	if err != nil {
		t.Fatal(err)
	}
	got := a.Apply(t.Context(), change("http://new:3128"))
	wantOutcome(t, got, apply.Done)
	if !slices.Equal(got.LeftStopped, []string{containerd, docker}) {
		t.Errorf("left stopped %q", got.LeftStopped)
	}
	if content, err := h.root.ReadFile(dockerEnv); err != nil || string(content) != "HTTPS_PROXY=http://new:3128\n" {
		t.Errorf("%q, %v", content, err)
	}
}

func TestC29_StoppedStaysStopped(t *testing.T) {
	h := newHost(t, scratch(t))
	if err := h.model.SetActive(docker, "inactive"); err != nil {
		t.Fatal(err)
	}
	p := h.parts()
	req := change("http://new:3128")
	req.Prober = p.prober
	got := h.applier(t, p).Apply(t.Context(), req)
	wantOutcome(t, got, apply.Done)
	if !slices.Equal(got.LeftStopped, []string{docker}) || h.process(t, docker).Active != "inactive" {
		t.Errorf("left stopped %q, docker is %s", got.LeftStopped, h.process(t, docker).Active)
	}

	h = newHost(t, scratch(t))
	if err := h.model.SetActive(docker, "inactive"); err != nil {
		t.Fatal(err)
	}
	req = change("http://new:3128/BAD")
	req.Prober = &fakeProber{model: h.model}
	wantOutcome(t, h.applier(t, h.parts()).Apply(t.Context(), req), apply.RolledBack)
	if h.process(t, docker).Active != "inactive" {
		t.Error("the undo started a stopped unit")
	}
}

func TestC31_DeadProxyChangesNothing(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	p := h.parts()
	first := apply.Failure{Subject: "proxy", Kind: "Dial", Hop: "new:3128", Message: "connection refused"}
	req := change("http://new:3128")
	req.Prober = &fakeProber{model: h.model, asked: []apply.Failure{first}}
	a := h.applier(t, p)
	got := a.Apply(t.Context(), req)
	wantOutcome(t, got, apply.ProbeFailed)
	if !errors.Is(got.Err, first) {
		t.Errorf("err %v", got.Err)
	}
	same(t, "the host", before, h.snapshot(t))
	got = a.Apply(t.Context(), req)
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonApprovalUsed)
}

func TestC31_ProxyThatServesOnlyTheAgentIsUndone(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	p := h.parts()
	req := change("http://new:3128/BAD")
	req.Prober = p.prober
	got := h.applier(t, p).Apply(t.Context(), req)
	wantOutcome(t, got, apply.RolledBack)
	var first apply.Failure
	if !errors.As(got.Err, &first) || first.Kind != "Pull" {
		t.Errorf("first failure %v", got.Err)
	}
	if got.Reproof == nil || len(got.Reproof.Failures) != 0 {
		t.Errorf("reproof %+v", got.Reproof)
	}
	same(t, "the host", before, h.snapshot(t))
}

func TestC32_DaemonThatCannotStartIsUndone(t *testing.T) {
	for _, word := range []string{"FAIL", "HANG"} {
		t.Run(word, func(t *testing.T) {
			h := newHost(t, scratch(t))
			before := h.snapshot(t)
			p := h.parts()
			req := change("http://new:3128/" + word)
			req.Prober = p.prober
			got := h.applier(t, p).Apply(t.Context(), req)
			wantOutcome(t, got, apply.RolledBack)
			var restart *apply.RestartError
			if !errors.As(got.Err, &restart) || restart.Unit != containerd {
				t.Errorf("first failure %v", got.Err)
			}
			same(t, "the host", before, h.snapshot(t))
		})
	}
}

func TestC32_DaemonThatHangsIsUndoneByTheDeadMan(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	p := h.parts()
	req := change("http://new:3128/HANG")
	req.Prober = p.prober
	ctx, cancel := context.WithCancel(t.Context())
	p.events = func(e apply.Event) {
		if e.Step == apply.StepRestart && !e.Ended {
			time.AfterFunc(20*time.Millisecond, cancel) // the agent goes away while the daemon hangs
		}
	}
	wantOutcome(t, h.applier(t, p).Apply(ctx, req), apply.Interrupted)
	if got := h.process(t, containerd).Active; got != "activating" {
		t.Fatalf("the daemon is %s, so this tests nothing", got)
	}
	got := h.plainApplier(t).RunDeadman(t.Context(), time.Second)
	wantOutcome(t, got, apply.Interrupted)
	same(t, "the host", before, h.snapshot(t))
}

func TestC66_InterruptedIsFinishedByTheNext(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	req := change("http://new:3128")
	req.Prober = p.prober
	ctx, cancel := context.WithCancel(t.Context())
	p.events = func(e apply.Event) {
		if e.Step == apply.StepRestart && e.Ended {
			cancel()
		}
	}
	a := h.applier(t, p)
	wantOutcome(t, a.Apply(ctx, req), apply.Interrupted)
	first := h.process(t, containerd).InvocationID

	next := change("http://other:3128")
	next.Attempt = "attempt-2"
	got := h.plainApplier(t).Apply(t.Context(), next)
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonUnfinished)

	got = h.plainApplier(t).Recover(t.Context(), apply.Recovery{Forward: true, Checks: apply.Checks{Prober: req.Prober}})
	wantOutcome(t, got, apply.Done)
	if !got.Resumed || got.Attempt != "attempt-1" || got.Err != nil {
		t.Errorf("result %+v", got)
	}
	if h.process(t, containerd).InvocationID != first {
		t.Error("a daemon that was restarted already was restarted again")
	}
	if env := h.process(t, docker).Environ; env != "HTTPS_PROXY=http://new:3128\n" {
		t.Errorf("docker runs with %q", env)
	}
}

// Whoever undoes after a reboot may run before the daemon is due, so it must not wait for its start;
// what the boot does not start runs again all the same, as it did before.
func TestRecover_LeavesTheStartToTheBoot(t *testing.T) {
	for name, tt := range map[string]struct {
		active      string
		due, starts bool
	}{
		"due":         {"inactive", true, false},
		"not enabled": {"inactive", false, true},
		"failed":      {"failed", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, scratch(t))
			p := h.parts()
			ctx, cancel := context.WithCancel(t.Context())
			p.events = func(e apply.Event) {
				if e.Step == apply.StepRestart && e.Ended {
					cancel()
				}
			}
			wantOutcome(t, h.applier(t, p).Apply(ctx, change("http://new:3128")), apply.Interrupted)
			for _, unit := range []string{containerd, docker} {
				set := func() error { return h.model.SetActive(unit, tt.active) }
				if tt.due {
					set = func() error { return h.model.Due(unit) }
				}
				if err := set(); err != nil {
					t.Fatal(err)
				}
			}
			h.boot = "boot-2"
			got := h.plainApplier(t).Recover(t.Context(), apply.Recovery{})
			wantOutcome(t, got, apply.Interrupted)
			if len(got.Restarted) > 0 != tt.starts {
				t.Errorf("restarted %q", got.Restarted)
			}
			if p := h.process(t, containerd); tt.starts && (p.Active != "active" || p.Environ != "HTTPS_PROXY=http://old:3128\n") || tt.due && p.Active != "inactive" {
				t.Errorf("the daemon is %s with %q", p.Active, p.Environ)
			}
			content, err := h.root.ReadFile(envFile)
			if err != nil || string(content) != "HTTPS_PROXY=http://old:3128\n" {
				t.Errorf("the environment file holds %q: %v", content, err)
			}
		})
	}
}

func TestRecover_ChangeThatEndsItsMakersIsUndone(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	p := h.parts()
	req := change("http://new:3128")
	req.Prober = p.prober
	var cancel context.CancelFunc
	p.events = func(e apply.Event) {
		if e.Step == apply.StepWrite {
			cancel()
		}
	}
	a := h.applier(t, p)
	ctx, stop := context.WithCancel(t.Context())
	cancel = stop
	wantOutcome(t, a.Apply(ctx, req), apply.Interrupted)
	for try := range 10 {
		ctx, stop := context.WithCancel(t.Context())
		cancel = stop
		got := a.Recover(ctx, apply.Recovery{Forward: true, Checks: req.Checks})
		stop()
		if got.Err != nil && errors.Is(got.Err, context.Canceled) {
			continue
		}
		if try < 3 {
			t.Errorf("it was given up after %d tries", try)
		}
		wantOutcome(t, got, apply.Interrupted)
		same(t, "the host", before, h.snapshot(t))
		return
	}
	t.Fatal("it was never given up")
}

func TestApply_UndoFails(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	broken := &brokenUnits{HostUnits: h.model}
	p.units = broken
	req := change("http://new:3128")
	req.Prober = p.prober
	p.guard = h.deadman(h.parts())
	a := h.applier(t, p)
	broken.restart = errors.New("systemd is on fire")
	got := a.Apply(t.Context(), req)
	// containerd was never restarted, so putting the files back is all that the undo needs.
	wantOutcome(t, got, apply.RolledBack)

	broken.restart = nil
	broken.after = 1 // containerd comes up on the new files, nothing does after that
	req.Attempt = "attempt-2"
	got = a.Apply(t.Context(), req)
	wantOutcome(t, got, apply.UndoFailed)
	if got.Err == nil || got.UndoErr == nil {
		t.Errorf("first %v, undo %v", got.Err, got.UndoErr)
	}
	snap := h.snapshot(t)
	if snap["dead-man enabled"] != "true" || snap["journal"] == "closed" {
		t.Errorf("the dead-man is not left to try again: %v", snap)
	}
	for range 4 {
		got = a.Recover(t.Context(), apply.Recovery{})
		wantOutcome(t, got, apply.UndoFailed)
	}
	wantOutcome(t, a.Recover(t.Context(), apply.Recovery{}), apply.Unchanged)
	if snap := h.snapshot(t); snap["dead-man enabled"] != "false" {
		t.Error("the dead-man is armed for a change that was given up")
	}
	if saved, err := filepath.Glob(filepath.Join(h.root.Dir(), apply.StateDir, "backup", "*", "*.prev")); err != nil || len(saved) != 2 {
		t.Errorf("the previous files were not kept: %q, %v", saved, err)
	}
}

// brokenUnits fails restarts: all with restart, or those after the first n.
type brokenUnits struct {
	applytest.HostUnits
	restart error
	after   int
	calls   int
}

func (b *brokenUnits) Restart(ctx context.Context, unit string) error {
	if b.restart != nil {
		return b.restart
	}
	if b.calls++; b.after > 0 && b.calls > b.after {
		return errors.New("systemd is on fire")
	}
	return b.HostUnits.Restart(ctx, unit)
}

func TestApply_RefusedRestart(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	req := change("http://new:3128")
	req.Plan.Units = []drift.UnitVerdict{{Unit: containerd, Restart: runtimes.RestartEffect{Refuse: "an upgrade is pending"}}}
	got := h.applier(t, h.parts()).Apply(t.Context(), req)
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonRestart)
	same(t, "the host", before, h.snapshot(t))
}

func wantReason(t *testing.T, err error, want apply.Reason) {
	t.Helper()
	var refused *apply.RefusedError
	if !errors.As(err, &refused) || refused.Reason != want {
		t.Errorf("error %v, want reason %s", err, want)
	}
}
