package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/agent/apply/applytest"
)

// scenario is one change that is interrupted everywhere.
type scenario struct {
	name string
	req  apply.Request
	want apply.Outcome
}

func scenarios() []scenario {
	return []scenario{
		{"apply", change("http://new:3128"), apply.Done},
		{"undo-proof", change("http://new:3128/BAD"), apply.RolledBack},
		{"undo-start", change("http://new:3128/FAIL"), apply.RolledBack},
		{"remove", removal(), apply.Done},
	}
}

// bench runs a scenario on the model. How a process dies is up to kill.
type bench struct {
	base string
	req  apply.Request
	want apply.Outcome
	// kill makes the change, which dies by the killer's hand or returns.
	kill func(t testing.TB, h *host, job string, at int, moment applytest.Moment) (died bool)
	runs int
	dir  string
}

func (b *bench) Reset(t testing.TB) {
	b.runs++
	if b.dir != "" {
		if err := os.RemoveAll(b.dir); err != nil {
			t.Fatal(err)
		}
	}
	b.dir = filepath.Join(b.base, strconv.Itoa(b.runs))
	newHost(t, b.dir)
}

func (b *bench) Change(t testing.TB, at int, moment applytest.Moment) bool {
	return b.kill(t, openHost(t, b.dir), "change", at, moment)
}

func (b *bench) Finish(t testing.TB, by applytest.Finisher, at int, moment applytest.Moment) bool {
	h := openHost(t, b.dir)
	if by == applytest.DeadManAfterBoot {
		if err := h.model.Reboot(); err != nil {
			t.Fatal(err)
		}
	}
	return b.killByPanic(t, h, string(by), at, moment)
}

func (b *bench) Snapshot(t testing.TB) applytest.Snapshot { return openHost(t, b.dir).snapshot(t) }

// job does what a process of the bench does, mortally.
func (b *bench) job(t testing.TB, h *host, job string, killer *applytest.Killer) error {
	p := h.parts()
	p.files = killer.Files(p.files)
	p.units = killer.Units(h.model, h.model.Queue)
	p.guard = h.deadman(p)
	p.prober = killer.Prober(p.prober)
	a := h.applier(t, p)
	ctx := context.Background()
	switch job {
	case "change":
		req := b.req
		req.Prober = p.prober
		if got := a.Apply(ctx, req); got.Outcome != b.want {
			return fmt.Errorf("the change ended %s (%w, undo: %v, notes %q), want %s", got.Outcome, got.Err, got.UndoErr, got.Notes, b.want)
		}
		return nil
	case string(applytest.Successor):
		return ended(a.Recover(ctx, apply.Recovery{Forward: true, Checks: apply.Checks{Prober: p.prober}}))
	case string(applytest.Undoer):
		return ended(a.Recover(ctx, apply.Recovery{}))
	default:
		return ended(a.RunDeadman(ctx, time.Second))
	}
}

// ended fails for outcomes that leave something to do.
func ended(r apply.Result) error {
	switch r.Outcome {
	case apply.Done, apply.Unchanged, apply.RolledBack, apply.Interrupted:
		return nil
	}
	return fmt.Errorf("finishing ended %s: %w (undo: %v, notes %q)", r.Outcome, r.Err, r.UndoErr, r.Notes)
}

// died is what an in-process death panics with.
type died struct{ point string }

// killByPanic dies by unwinding, which is quick enough to try everything.
func (b *bench) killByPanic(t testing.TB, h *host, job string, at int, moment applytest.Moment) (dead bool) {
	killer := &applytest.Killer{At: at, Moment: moment, Die: func(point string) { panic(died{point}) }}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case died:
			dead = true
		default:
			panic(r)
		}
	}()
	if err := b.job(t, h, job, killer); err != nil {
		t.Fatal(err)
	}
	return false
}

// Environment of a child process of the test.
const (
	childJob    = "PROXYWARD_TEST_JOB"
	childDir    = "PROXYWARD_TEST_DIR"
	childCase   = "PROXYWARD_TEST_CASE"
	childAt     = "PROXYWARD_TEST_AT"
	childMoment = "PROXYWARD_TEST_MOMENT"
)

// killBySignal runs the job in a child that sends itself SIGKILL.
func (b *bench) killBySignal(name string) func(testing.TB, *host, string, int, applytest.Moment) bool {
	return func(t testing.TB, h *host, job string, at int, moment applytest.Moment) bool {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$")
		child.Env = append(os.Environ(), childJob+"="+job, childDir+"="+h.dir, childCase+"="+name,
			childAt+"="+strconv.Itoa(at), childMoment+"="+strconv.Itoa(int(moment)))
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL && ctx.Err() == nil {
				return true
			}
		}
		if err != nil {
			t.Fatalf("the child failed: %v\n%s", err, out)
		}
		return false
	}
}

// TestChild is the process that is killed. It has nothing to do in an ordinary run.
func TestChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		return
	}
	at, err := strconv.Atoi(os.Getenv(childAt))
	if err != nil {
		t.Fatal(err)
	}
	moment, err := strconv.Atoi(os.Getenv(childMoment))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios() {
		if s.name != os.Getenv(childCase) {
			continue
		}
		killer := &applytest.Killer{At: at, Moment: applytest.Moment(moment), Die: func(string) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}}
		b := &bench{req: s.req, want: s.want}
		if err := b.job(t, openHost(t, dir), os.Getenv(childJob), killer); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no scenario %q", os.Getenv(childCase))
}

func TestC33_KilledAtEveryStep(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{base: scratch(t), req: s.req, want: s.want}
			b.kill = b.killByPanic
			// Before a point is After the one before it, but for what systemd was asked; During sees that.
			applytest.TestEveryStep(t, b, applytest.Plan{Moments: []applytest.Moment{applytest.During, applytest.After}})
		})
	}
}

func TestC33_FinisherKilledToo(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{base: scratch(t), req: s.req, want: s.want}
			b.kill = b.killByPanic
			applytest.TestEveryStep(t, b, applytest.Plan{
				KillFinisher: true,
				Finishers:    []applytest.Finisher{applytest.Successor, applytest.DeadManAfterBoot},
				Moments:      []applytest.Moment{applytest.After},
			})
		})
	}
}

func TestC33_RealKill(t *testing.T) {
	// Each scenario is finished by another, so that every finisher is seen; the two tests above try
	// all of them at all points.
	finishers := applytest.Finishers()
	for i, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{base: scratch(t), req: s.req, want: s.want}
			b.kill = b.killBySignal(s.name)
			applytest.TestEveryStep(t, b, applytest.Plan{
				Finishers: finishers[i%len(finishers) : i%len(finishers)+1],
				Moments:   []applytest.Moment{applytest.Before, applytest.After},
			})
		})
	}
}
