package apply_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/hostfs"
)

func TestApply_Approval(t *testing.T) {
	h := newHost(t, scratch(t))
	good := v1alpha1.Approval{
		PlanHash: "plan", Attempt: "a-1", BootID: h.boot,
		Invocations: map[string]string{
			containerd: h.process(t, containerd).InvocationID,
			docker:     h.process(t, docker).InvocationID,
		},
	}
	for _, tc := range []struct {
		name   string
		change func(*v1alpha1.Approval)
		want   apply.Reason
	}{
		{"another plan", func(a *v1alpha1.Approval) { a.PlanHash = "other" }, apply.ReasonApprovalStale},
		{"another boot", func(a *v1alpha1.Approval) { a.BootID = "boot-0" }, apply.ReasonApprovalStale},
		{"another invocation", func(a *v1alpha1.Approval) {
			a.Invocations = map[string]string{containerd: "0", docker: good.Invocations[docker]}
		}, apply.ReasonApprovalStale},
		{"a unit not named", func(a *v1alpha1.Approval) {
			a.Invocations = map[string]string{containerd: good.Invocations[containerd]}
		}, apply.ReasonApprovalStale},
		{"no attempt", func(a *v1alpha1.Approval) { a.Attempt = "" }, apply.ReasonNotApproved},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := h.snapshot(t)
			approval := good
			tc.change(&approval)
			req := change("http://new:3128")
			req.Local, req.Approval = false, &approval
			got := h.applier(t, h.parts()).Apply(t.Context(), req)
			wantOutcome(t, got, apply.Refused)
			wantReason(t, got.Err, tc.want)
			same(t, "the host", before, h.snapshot(t))
		})
	}
	t.Run("none", func(t *testing.T) {
		req := change("http://new:3128")
		req.Local = false
		got := h.applier(t, h.parts()).Apply(t.Context(), req)
		wantOutcome(t, got, apply.Refused)
		wantReason(t, got.Err, apply.ReasonNotApproved)
	})
	t.Run("good", func(t *testing.T) {
		req := change("http://new:3128")
		req.Local, req.Approval = false, &good
		wantOutcome(t, h.applier(t, h.parts()).Apply(t.Context(), req), apply.Done)
	})
}

func TestC59_ApprovalIsUsedOnce(t *testing.T) {
	h := newHost(t, scratch(t))
	req := change("http://new:3128")
	wantOutcome(t, h.applier(t, h.parts()).Apply(t.Context(), req), apply.Done)
	// Somebody purges the files, and the agent is another process by then.
	if _, err := h.root.Remove(dropIn); err != nil {
		t.Fatal(err)
	}
	before := h.process(t, containerd)
	got := openHost(t, h.dir).plainApplier(t).Apply(t.Context(), req)
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonApprovalUsed)
	if h.process(t, containerd).InvocationID != before.InvocationID {
		t.Error("the daemon was restarted")
	}
}

func TestC12_NonRegularFileIsRefused(t *testing.T) {
	h := newHost(t, scratch(t))
	if _, err := h.root.Remove(dropIn); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(h.root.Dir(), "etc/precious")
	if err := os.WriteFile(target, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/precious", filepath.Join(h.root.Dir(), dropIn)); err != nil {
		t.Fatal(err)
	}
	before := h.snapshot(t)
	got := h.applier(t, h.parts()).Apply(t.Context(), change("http://new:3128"))
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonNotRegular)
	same(t, "the host", before, h.snapshot(t))
}

func TestApply_BusyLock(t *testing.T) {
	h := newHost(t, scratch(t))
	lock, err := h.root.Lock(t.Context(), hostfs.LockPath, "bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	got := h.applier(t, h.parts()).Apply(t.Context(), change("http://new:3128"))
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonBusy)
	var held *hostfs.LockedError
	if !errors.As(got.Err, &held) || held.Holder.Verb != "bootstrap" {
		t.Errorf("the holder is not named: %v", got.Err)
	}
}

func TestJournal_DamagedIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func([]byte) []byte
	}{
		{"empty", func([]byte) []byte { return nil }},
		{"truncated", func(b []byte) []byte { return b[:len(b)/2] }},
		{"edited", func(b []byte) []byte { return bytes.Replace(b, []byte(`"write"`), []byte(`"prove"`), 1) }},
		{"newer", func(b []byte) []byte { return bytes.Replace(b, []byte(`"schema":1`), []byte(`"schema":2`), 1) }},
		{"another kind of file", func([]byte) []byte { return []byte("hello\n") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHost(t, scratch(t))
			interruptAt(t, h, apply.StepWrite)
			good, err := h.root.ReadFile(apply.JournalPath)
			if err != nil {
				t.Fatal(err)
			}
			bad := tc.damage(good)
			if bytes.Equal(good, bad) {
				t.Fatal("nothing was damaged")
			}
			write(t, h.root, apply.JournalPath, string(bad), 0o600)
			before := h.process(t, containerd)
			for what, got := range map[string]apply.Result{
				"apply":    h.applier(t, h.parts()).Apply(t.Context(), change("http://other:3128")),
				"recover":  h.applier(t, h.parts()).Recover(t.Context(), apply.Recovery{}),
				"dead-man": h.plainApplier(t).RunDeadman(t.Context(), 0),
			} {
				wantOutcome(t, got, apply.Refused)
				var damaged *apply.JournalError
				if !errors.As(got.Err, &damaged) || damaged.Path != apply.JournalPath {
					t.Errorf("%s: %v", what, got.Err)
				}
			}
			if h.process(t, containerd).InvocationID != before.InvocationID {
				t.Error("a daemon was restarted on a journal that nobody understands")
			}
			// Put right, it is finished.
			write(t, h.root, apply.JournalPath, string(good), 0o600)
			wantOutcome(t, h.applier(t, h.parts()).Recover(t.Context(), apply.Recovery{}), apply.Interrupted)
		})
	}
}

// interruptAt makes a change whose maker goes away at the end of a step.
func interruptAt(t *testing.T, h *host, step apply.Step) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := h.parts()
	p.events = func(e apply.Event) {
		if e.Step == step && e.Ended {
			cancel()
		}
	}
	req := change("http://new:3128")
	req.Prober = p.prober
	wantOutcome(t, h.applier(t, p).Apply(ctx, req), apply.Interrupted)
}

func TestHistory_DamagedHoldsOffApprovals(t *testing.T) {
	h := newHost(t, scratch(t))
	interruptAt(t, h, apply.StepRestart)
	write(t, h.root, apply.HistoryPath, "garbage", 0o600)
	a := h.applier(t, h.parts())
	got := a.Recover(t.Context(), apply.Recovery{})
	wantOutcome(t, got, apply.Interrupted)
	next := change("http://new:3128")
	next.Attempt = "attempt-2"
	got = a.Apply(t.Context(), next)
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonState)
}
