package apply_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/internal/hostfs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s:\nwant %s\n got %s", name, want, got)
	}
}

func TestDeadman_Units(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	guard := h.deadman(p)
	h.model.Run = map[string]func(context.Context, string) error{
		apply.DeadmanService: func(context.Context, string) error { return nil },
	}
	times := apply.GuardTimes{After: 210*time.Second + time.Millisecond, Wait: 20 * time.Minute}
	if err := errors.Join(guard.Try(t.Context(), times), guard.Arm(t.Context(), times)); err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{apply.DeadmanService, apply.DeadmanTimer} {
		path := "/etc/systemd/system/" + unit
		content, err := h.root.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, unit, string(content))
		if info, err := h.root.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestDeadman_ArmedWhileTheChangeIsMade(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	seen := false
	p.events = func(e apply.Event) {
		if e.Step != apply.StepWrite || e.Ended {
			return
		}
		seen = true
		enabled, err := h.model.Enabled(apply.DeadmanTimer)
		if err != nil || !enabled || h.process(t, apply.DeadmanTimer).Active != "active" {
			t.Errorf("not armed: enabled %t (%v), timer %q", enabled, err, h.process(t, apply.DeadmanTimer).Active)
		}
	}
	wantOutcome(t, h.applier(t, p).Apply(t.Context(), change("http://new:3128")), apply.Done)
	if !seen {
		t.Error("nothing was written")
	}
}

func TestDeadman_GuardTimesFollowTheDaemons(t *testing.T) {
	h := newHost(t, scratch(t))
	guard := &notingGuard{}
	a, err := apply.New(apply.Config{
		Files: h.root, Units: h.model, Lock: apply.HostLock{Root: h.root, Verb: "agent"}, Clock: h.clock, BootID: "b", Guard: guard,
		Timeouts: apply.Timeouts{
			Reload: time.Second, Restart: time.Minute, Ready: 10 * time.Second, Creation: 5 * time.Second,
			Prove: 100 * time.Second, StartLimit: 3 * time.Second, Successor: 30 * time.Second,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, a.Apply(t.Context(), change("http://new:3128")), apply.Done)
	// The model says 2 s to start and to stop; the margin is 15 s, and there are two units.
	want := apply.GuardTimes{After: 2*19*time.Second + 30*time.Second, Wait: 2 * (2 + 100 + 2*(19+10+10+3)) * time.Second}
	if guard.times != want {
		t.Errorf("times %+v, want %+v", guard.times, want)
	}
}

type notingGuard struct{ times apply.GuardTimes }

func (g *notingGuard) Try(context.Context, apply.GuardTimes) error { return nil }
func (g *notingGuard) Arm(_ context.Context, times apply.GuardTimes) error {
	g.times = times
	return nil
}
func (g *notingGuard) Disarm(context.Context) error { return nil }

// noexec makes programs below a directory fail to run.
func (h *host) noexec(below ...string) {
	run := h.model.Run[apply.DeadmanService]
	h.model.Run[apply.DeadmanService] = func(ctx context.Context, program string) error {
		for _, dir := range below {
			if strings.HasPrefix(program, dir) {
				return errors.New("status 203/EXEC")
			}
		}
		return run(ctx, program)
	}
}

func TestDeadman_NoexecVarFallsBack(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	ran := ""
	p.events = func(e apply.Event) {
		if e.Step == apply.StepWrite {
			content, err := h.root.ReadFile("/etc/systemd/system/" + apply.DeadmanService)
			if err != nil {
				t.Error(err)
			}
			ran = string(content)
		}
	}
	a := h.applier(t, p)
	h.noexec("/var")
	wantOutcome(t, a.Apply(t.Context(), change("http://new:3128")), apply.Done)
	if !strings.Contains(ran, "ExecStart=/usr/local/lib/proxyward/") {
		t.Errorf("the service runs\n%s", ran)
	}
	for _, dir := range apply.DeadmanDirs() {
		if _, err := h.root.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was left: %v", dir, err)
		}
	}
}

func TestDeadman_LeavesOtherPeoplesFiles(t *testing.T) {
	h := newHost(t, scratch(t))
	const theirs = "/usr/local/lib/proxyward/README"
	write(t, h.root, theirs, "mine", 0o644)
	a := h.applier(t, h.parts())
	h.noexec("/var")
	wantOutcome(t, a.Apply(t.Context(), change("http://new:3128")), apply.Done)
	entries, err := h.root.ReadDir("/usr/local/lib/proxyward")
	if err != nil || len(entries) != 1 || entries[0].Name() != "README" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestDeadman_ThatCannotRunForbidsTheChange(t *testing.T) {
	h := newHost(t, scratch(t))
	before := h.snapshot(t)
	invocation := h.process(t, containerd).InvocationID
	a := h.applier(t, h.parts())
	h.noexec("/var", "/usr")
	got := a.Apply(t.Context(), change("http://new:3128"))
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonGuard)
	same(t, "the host", before, h.snapshot(t))
	if h.process(t, containerd).InvocationID != invocation {
		t.Error("the daemon was restarted")
	}
}

func TestDeadman_TriedSeesWhatItCouldNotPutBack(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	p.events = func(e apply.Event) {
		if e.Step != apply.StepTry || e.Ended {
			return
		}
		saved, err := filepath.Glob(filepath.Join(h.root.Dir(), apply.StateDir, "backup", "*", "*.prev"))
		if err != nil || len(saved) == 0 {
			t.Errorf("saved %q, %v", saved, err)
			return
		}
		if err := os.Remove(saved[0]); err != nil {
			t.Error(err)
		}
	}
	got := h.applier(t, p).Apply(t.Context(), change("http://new:3128"))
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonGuard)
}

func TestDeadman_WaitsForALiveChange(t *testing.T) {
	h := newHost(t, scratch(t))
	p := h.parts()
	fired := make(chan apply.Result, 1)
	p.events = func(e apply.Event) {
		if e.Step == apply.StepRestart && e.Unit == docker && !e.Ended {
			go func() { fired <- openHost(t, h.dir).plainApplier(t).RunDeadman(t.Context(), 10*time.Second) }()
			time.Sleep(50 * time.Millisecond) // long enough for it to want the lock
		}
	}
	wantOutcome(t, h.applier(t, p).Apply(t.Context(), change("http://new:3128")), apply.Done)
	got := <-fired
	wantOutcome(t, got, apply.Unchanged)
	if got.Err != nil {
		t.Error(got.Err)
	}
	if env := h.process(t, containerd).Environ; env != "HTTPS_PROXY=http://new:3128\n" {
		t.Errorf("the dead-man undid a finished change: %q", env)
	}
}

func TestDeadman_GivesUpWaiting(t *testing.T) {
	h := newHost(t, scratch(t))
	interruptAt(t, h, apply.StepRestart)
	lock, err := h.root.Lock(t.Context(), hostfs.LockPath, "agent")
	if err != nil {
		t.Fatal(err)
	}
	before := h.snapshot(t)
	got := h.plainApplier(t).RunDeadman(t.Context(), 10*time.Millisecond)
	wantOutcome(t, got, apply.Refused)
	wantReason(t, got.Err, apply.ReasonBusy)
	same(t, "the host", before, h.snapshot(t)) // armed still, so that it looks again
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, h.plainApplier(t).RunDeadman(t.Context(), time.Second), apply.Interrupted)
}

func TestC65_DeadManKeepsWhatCannotGoBack(t *testing.T) {
	h := newHost(t, scratch(t))
	ctx, cancel := context.WithCancel(t.Context())
	p := h.parts()
	p.events = func(e apply.Event) {
		if e.Step == apply.StepProve {
			cancel()
		}
	}
	req := change("http://new:3128")
	dead := apply.Failure{Subject: "External", Kind: apply.KindProxyAuth, Hop: "old:3128", Message: "407"}
	req.Prober = &fakeProber{model: h.model, before: []apply.Failure{dead}}
	wantOutcome(t, h.applier(t, p).Apply(ctx, req), apply.Interrupted)
	wantOutcome(t, h.plainApplier(t).RunDeadman(t.Context(), time.Second), apply.NotUndone)
	snap := h.snapshot(t)
	if h.process(t, containerd).Environ != "HTTPS_PROXY=http://new:3128\n" || snap["journal"] != "closed" || snap["dead-man enabled"] != "false" {
		t.Errorf("host %v", snap)
	}
}

func TestOwnProgram(t *testing.T) {
	content, release, err := apply.OwnProgram()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(content) {
		t.Error("the content is not the running program's")
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
