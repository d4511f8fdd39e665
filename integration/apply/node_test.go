//go:build linux

package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/agent/apply/applytest"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/internal/hostfs"
)

const (
	program = "/usr/local/bin/applynode"
	unit    = "victim.service"
	dropIn  = "/etc/systemd/system/" + unit + ".d/zz-proxyward.conf"
	envFile = "/etc/proxyward/env/" + unit + ".env"

	oldProxy, newProxy = "http://old:3128", "http://new:3128"
)

// victimUnit is a daemon of Type=notify, as the runtimes are.
const victimUnit = `[Unit]
StartLimitIntervalSec=0
[Service]
Type=notify
ExecStart=` + program + ` serve
TimeoutStartSec=60
TimeoutStopSec=2
`

// build makes the program that runs on nodes.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "applynode")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../cmd/applynode")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return path
}

// bench makes changes on a node.
type bench struct {
	node        *lab.Node
	root        *hostfs.Root
	verb, proxy string
	restartAt   int // the point of the restart, once it was found
}

func startBench(t *testing.T, generation lab.Generation) *bench {
	t.Helper()
	l := lab.Start(t, lab.Config{Generation: generation, Nodes: []lab.NodeSpec{{Name: "n1"}}})
	b := &bench{node: l.Node("n1"), verb: "change", proxy: newProxy}
	if err := b.node.CopyIn(t.Context(), build(t), program, 0o755); err != nil {
		t.Fatal(err)
	}
	b.write(t, "/etc/systemd/system/"+unit, victimUnit, 0o644)
	root, err := hostfs.Open(b.node.Root())
	if err != nil {
		t.Fatal(err)
	}
	b.root = root
	return b
}

func (b *bench) write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := b.node.WriteFile(t.Context(), path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := b.node.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Reset implements applytest.Bench.
func (b *bench) Reset(t testing.TB) {
	t.Helper()
	b.run(t, "sh", "-c", "systemctl disable --now "+apply.DeadmanTimer+" 2>/dev/null; systemctl stop "+apply.DeadmanService+" 2>/dev/null; "+
		"rm -rf /var/lib/proxyward /etc/proxyward /etc/systemd/system/"+unit+".d /etc/systemd/system/proxyward-deadman.*")
	b.write(t, envFile, "HTTPS_PROXY="+oldProxy+"\n", 0o600)
	b.write(t, dropIn, "# Managed by Proxyward, an older one\n[Service]\nEnvironmentFile=-"+envFile+"\n", 0o640)
	b.run(t, "sh", "-c", "systemctl daemon-reload; systemctl reset-failed "+unit+" 2>/dev/null; systemctl restart "+unit)
}

// mortal runs the program, which may die at a point.
func (b *bench) mortal(t testing.TB, verb string, at int, moment applytest.Moment) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := b.node.Command(ctx, program, verb, unit, b.proxy, strconv.Itoa(at), strconv.Itoa(int(moment))).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		// nsenter ends as its child did.
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
			return true
		}
	}
	if err != nil {
		t.Fatalf("%s at point %d: %v\n%s", verb, at, err, out)
	}
	return false
}

// Change implements applytest.Bench.
func (b *bench) Change(t testing.TB, at int, moment applytest.Moment) bool {
	return b.mortal(t, b.verb, at, moment)
}

// Finish implements applytest.Bench. The dead-man is run by systemd where it was installed; before
// that nothing of the host's had been changed, and the next process only tidies up.
func (b *bench) Finish(t testing.TB, by applytest.Finisher, at int, moment applytest.Moment) bool {
	t.Helper()
	if by == applytest.DeadManAfterBoot {
		if err := b.node.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if by == applytest.Successor || by == applytest.Undoer {
		return b.mortal(t, string(by), at, moment)
	}
	if _, err := b.root.Stat("/etc/systemd/system/" + apply.DeadmanService); errors.Is(err, fs.ErrNotExist) {
		return b.mortal(t, string(applytest.Undoer), at, moment)
	}
	b.run(t, "systemctl", "start", apply.DeadmanService)
	return false
}

// Snapshot implements applytest.Bench.
func (b *bench) Snapshot(t testing.TB) applytest.Snapshot {
	t.Helper()
	out := applytest.Snapshot{}
	for _, path := range []string{
		dropIn, envFile, filepath.Dir(dropIn), filepath.Dir(envFile), apply.StateDir + "/bin", "/usr/local/lib/proxyward",
		"/etc/systemd/system/" + apply.DeadmanService, "/etc/systemd/system/" + apply.DeadmanTimer,
		"/etc/systemd/system/timers.target.wants/" + apply.DeadmanTimer,
	} {
		info, err := b.root.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := b.root.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out[path] += " " + string(content)
		}
	}
	if saved, err := b.root.ReadDir(apply.StateDir + "/backup"); err == nil && len(saved) > 0 {
		out["backup"] = fmt.Sprint(saved)
	}
	rec, err := apply.ReadJournal(b.root)
	if err != nil {
		t.Fatal(err)
	}
	if rec != nil && !rec.Finished() {
		out["journal"] = string(rec.Step)
	}
	out["unit"] = b.run(t, "systemctl", "show", "--property=ActiveState,DropInPaths,NeedDaemonReload", unit)
	env, err := b.node.Environ(t.Context(), unit)
	if err != nil {
		t.Fatal(err)
	}
	out["proxy"] = env["HTTPS_PROXY"]
	out["timer"] = b.run(t, "systemctl", "show", "--property=ActiveState", apply.DeadmanTimer)
	return out
}

// stride is 1 with EVERY=1 in the environment. Each point takes some seconds on a real node, and
// the same suite tries all of them over the model of systemd.
func stride() int {
	if os.Getenv("EVERY") == "1" {
		return 1
	}
	return 6
}

func TestC33_RealNodeKilledAtSteps(t *testing.T) {
	for _, generation := range lab.GenerationsUnderTest(t) {
		t.Run(string(generation), func(t *testing.T) {
			b := startBench(t, generation)
			for _, tc := range []struct{ name, verb, proxy string }{
				{"apply", "change", newProxy},
				{"undo", "change", newProxy + "/BAD"},
				{"remove", "remove", ""},
			} {
				t.Run(tc.name, func(t *testing.T) {
					b.verb, b.proxy = tc.verb, tc.proxy
					applytest.TestEveryStep(t, b, applytest.Plan{
						Finishers: []applytest.Finisher{applytest.Successor, applytest.DeadMan},
						Moments:   []applytest.Moment{applytest.During},
						Stride:    stride(),
					})
				})
			}
		})
	}
}

// waitProxy waits until the daemon runs with a proxy.
func (b *bench) waitProxy(t *testing.T, want string, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		env, err := b.node.Environ(ctx, unit)
		state, stateErr := b.node.Show(ctx, unit, "ActiveState")
		if err == nil && stateErr == nil && env["HTTPS_PROXY"] == want && state == "active" {
			return
		}
		select {
		case <-ctx.Done():
			journal, _ := b.node.Journal(t.Context(), apply.DeadmanService)
			t.Fatalf("the daemon is %s with proxy %q (%v), want active with %q; the dead-man says:\n%s", state, env["HTTPS_PROXY"], err, want, journal)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// dieInRestart makes a change that dies while the daemon is restarted.
func (b *bench) dieInRestart(t *testing.T) {
	t.Helper()
	for at := max(1, b.restartAt); ; at++ {
		b.Reset(t)
		if !b.Change(t, at, applytest.During) {
			t.Fatal("no point in the restart was found")
		}
		rec, err := apply.ReadJournal(b.root)
		if err != nil {
			t.Fatal(err)
		}
		env, err := b.node.Environ(t.Context(), unit)
		if err == nil && rec != nil && rec.Step == apply.StepRestart && env["HTTPS_PROXY"] == b.proxy {
			b.restartAt = at
			return
		}
	}
}

func TestC32_RealDeadManSavesTheNode(t *testing.T) {
	for _, generation := range lab.GenerationsUnderTest(t) {
		t.Run(string(generation), func(t *testing.T) {
			b := startBench(t, generation)
			b.proxy = newProxy + "/HANG"
			b.Reset(t)
			before := b.Snapshot(t)
			for _, tc := range []struct {
				name string
				then func(t *testing.T)
			}{
				{"nothing else", func(*testing.T) {}},
				{"daemon-reload", func(t *testing.T) { b.run(t, "systemctl", "daemon-reload") }},
				{"daemon-reexec", func(t *testing.T) { b.run(t, "systemctl", "daemon-reexec") }},
				{"reboot", func(t *testing.T) {
					if err := b.node.Reboot(t.Context()); err != nil {
						t.Fatal(err)
					}
				}},
			} {
				t.Run(tc.name, func(t *testing.T) {
					b.dieInRestart(t)
					tc.then(t)
					b.waitProxy(t, oldProxy, 60*time.Second)
					// It disarms itself after that.
					deadline := time.Now().Add(20 * time.Second)
					for got := b.Snapshot(t); fmt.Sprint(got) != fmt.Sprint(before); got = b.Snapshot(t) {
						if time.Now().After(deadline) {
							t.Fatalf("the host is\n%v, want\n%v", got, before)
						}
						time.Sleep(200 * time.Millisecond)
					}
				})
			}
		})
	}
}

func TestDeadman_RealNoexecVar(t *testing.T) {
	b := startBench(t, lab.Trixie)
	b.Reset(t)
	b.run(t, "sh", "-c", "mkdir -p /var/lib/proxyward && mount -t tmpfs -o noexec tmpfs /var/lib/proxyward")
	if out := b.run(t, program, "change", unit, newProxy, "0", "0"); !strings.HasPrefix(out, string(apply.Done)) {
		t.Errorf("the change ended %s", out)
	}
	if journal, err := b.node.Journal(t.Context(), apply.DeadmanService); err != nil || !strings.Contains(journal, "203/EXEC") {
		t.Errorf("/var was not noexec for the dead-man (%v):\n%s", err, journal)
	}
	b.run(t, "umount", "/var/lib/proxyward")
}
