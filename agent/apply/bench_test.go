package apply_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/agent/apply/applytest"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/runtimes"
)

const (
	containerd = "containerd.service"
	docker     = "docker.service"

	dropIn       = "/etc/systemd/system/containerd.service.d/zz-proxyward.conf"
	envFile      = "/etc/proxyward/env/containerd.service.env"
	dockerDropIn = "/etc/systemd/system/docker.service.d/zz-proxyward.conf"
	dockerEnv    = "/etc/proxyward/env/docker.service.env"
)

// host is a directory with the model of systemd. It starts with containerd on an old environment
// and docker on none.
type host struct {
	dir   string
	root  *hostfs.Root
	model *applytest.Systemd
	clock *fakeClock
	boot  string
}

func write(t testing.TB, root *hostfs.Root, path, content string, mode fs.FileMode) {
	t.Helper()
	if _, err := root.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func newHost(t testing.TB, dir string) *host {
	t.Helper()
	h := openHost(t, dir)
	write(t, h.root, envFile, "HTTPS_PROXY=http://old:3128\n", 0o600)
	write(t, h.root, dropIn, "# Managed by Proxyward\n[Service]\nEnvironmentFile=-"+envFile+"\n", 0o640)
	model, err := applytest.NewSystemd(filepath.Join(dir, "root"), filepath.Join(dir, "systemd.json"), containerd, docker)
	if err != nil {
		t.Fatal(err)
	}
	h.model = model
	return h
}

// openHost returns a host that another process may have made.
func openHost(t testing.TB, dir string) *host {
	t.Helper()
	tree := filepath.Join(dir, "root")
	if err := os.MkdirAll(filepath.Join(tree, "etc/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := hostfs.Open(tree)
	if err != nil {
		t.Fatal(err)
	}
	return &host{
		dir: dir, root: root, boot: "boot-1", clock: &fakeClock{now: time.Unix(1_000_000, 0)},
		model: &applytest.Systemd{Root: tree, File: filepath.Join(dir, "systemd.json")},
	}
}

// scratch is a directory in memory where there is one: the suite fsyncs a great deal.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "proxyward-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// fakeClock moves only by sleeping.
type fakeClock struct {
	mu    sync.Mutex
	now   time.Time
	slept time.Duration
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept += d
	return ctx.Err()
}

// parts are what a test may put in place of the host's own.
type parts struct {
	files  apply.Files
	units  applytest.HostUnits
	guard  apply.Guard
	prober apply.Prober
	by     string
	events apply.Observer
}

func (h *host) parts() parts {
	p := parts{files: h.root, units: h.model, by: "agent"}
	p.guard = h.deadman(p)
	p.prober = &fakeProber{model: h.model}
	return p
}

func (h *host) deadman(p parts) *apply.Deadman {
	return &apply.Deadman{
		Files: p.files, Units: p.units, Installer: p.units,
		Program: func() ([]byte, func() error, error) {
			return []byte("a program"), func() error { return nil }, nil
		},
	}
}

// applier makes an applier; the service of its dead-man runs in this process.
func (h *host) applier(t testing.TB, p parts) *apply.Applier {
	t.Helper()
	h.model.Run = map[string]func(context.Context, string) error{
		apply.DeadmanService: func(ctx context.Context, program string) error {
			if _, err := h.root.Stat(program); err != nil {
				return err
			}
			return h.plainApplier(t).RunDeadman(ctx, time.Minute).Err
		},
	}
	return h.build(t, p)
}

func (h *host) plainApplier(t testing.TB) *apply.Applier {
	p := h.parts()
	p.by = "dead-man"
	return h.build(t, p)
}

func (h *host) build(t testing.TB, p parts) *apply.Applier {
	t.Helper()
	a, err := apply.New(apply.Config{
		Files: p.files, Units: p.units, Lock: apply.HostLock{Root: h.root, Verb: p.by},
		Clock: h.clock, BootID: h.boot, By: p.by, Guard: p.guard, Observe: p.events,
		Timeouts: apply.Timeouts{Lock: 50 * time.Millisecond, Restart: 300 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fakeProber judges by the environment that the daemons run with.
type fakeProber struct {
	model  *applytest.Systemd
	asked  []apply.Failure
	before []apply.Failure // of every proof until a daemon runs with a new environment
	after  []apply.Failure // of every proof from then on
	onAsk  func()
	proofs int
}

func (p *fakeProber) Ask(context.Context) apply.Proof {
	if p.onAsk != nil {
		p.onAsk()
	}
	return apply.Proof{Failures: p.asked}
}

func (p *fakeProber) Prove(_ context.Context, units []string) apply.Proof {
	p.proofs++
	renewed := false
	for _, unit := range units {
		process, err := p.model.Process(unit)
		if err != nil || process.Active != "active" {
			return apply.Proof{Failures: []apply.Failure{{Subject: unit, Kind: "Down", Message: fmt.Sprint(process.Active, err)}}}
		}
		if strings.Contains(process.Environ, "BAD") {
			return apply.Proof{Failures: []apply.Failure{{Subject: unit, Kind: "Pull", Hop: "new:3128", Message: "pull failed"}}}
		}
		renewed = renewed || strings.Contains(process.Environ, "new")
	}
	if renewed {
		return apply.Proof{Failures: p.after}
	}
	return apply.Proof{Failures: p.before}
}

// change is the plan that puts both daemons on a new environment.
func change(value string) apply.Request {
	file := func(unit, path, content string, mode fs.FileMode) drift.Action {
		return drift.Action{Kind: drift.ActionWrite, Unit: unit, File: runtimes.File{Path: path, Content: []byte(content), Mode: mode}}
	}
	env := "HTTPS_PROXY=" + value + "\n"
	return apply.Request{
		Plan: drift.Plan{Hash: "plan", Actions: []drift.Action{
			file(containerd, envFile, env, 0o600),
			file(containerd, dropIn, "# Managed by Proxyward\n[Service]\n# new\nEnvironmentFile=-"+envFile+"\n", 0o644),
			file(docker, dockerEnv, env, 0o600),
			file(docker, dockerDropIn, "# Managed by Proxyward\n[Service]\nEnvironmentFile=-"+dockerEnv+"\n", 0o644),
			{Kind: drift.ActionReload},
			{Kind: drift.ActionRestart, Unit: containerd},
			{Kind: drift.ActionRestart, Unit: docker},
		}},
		Revision: "rev-2", CredentialsVersion: "secret/2", Local: true, Attempt: "attempt-1",
	}
}

// removal takes containerd's files away.
func removal() apply.Request {
	return apply.Request{
		Plan: drift.Plan{Hash: "removal", Actions: []drift.Action{
			{Kind: drift.ActionRemove, Unit: containerd, File: runtimes.File{Path: dropIn}},
			{Kind: drift.ActionRemove, Unit: containerd, File: runtimes.File{Path: envFile}},
			{Kind: drift.ActionReload},
			{Kind: drift.ActionRestart, Unit: containerd},
		}},
		Local: true, Attempt: "attempt-r",
	}
}

// snapshot is the host as far as a change matters. InvocationIDs, history and times are not in it.
func (h *host) snapshot(t testing.TB) applytest.Snapshot {
	t.Helper()
	out := applytest.Snapshot{}
	tree := h.root.Dir()
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := "/" + strings.TrimPrefix(strings.TrimPrefix(path, tree), "/")
		kept := []string{apply.JournalPath, apply.HistoryPath, apply.KnownGoodPath, hostfs.LockPath}
		if slices.Contains(kept, name) || filepath.Base(name) == "proxyward" || name == "/usr" || strings.HasPrefix(name, "/usr/") || name == "/var" || name == "/var/lib" || name == apply.StateDir+"/backup" {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		out[name] = info.Mode().String()
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[name] += " " + string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{containerd, docker, apply.DeadmanTimer} {
		process, err := h.model.Process(unit)
		if err != nil {
			t.Fatal(err)
		}
		out["unit "+unit] = fmt.Sprint(process.Active, " ", process.Environ, process.DropIns)
	}
	enabled, err := h.model.Enabled(apply.DeadmanTimer)
	if err != nil {
		t.Fatal(err)
	}
	out["dead-man enabled"] = fmt.Sprint(enabled)
	outdated, err := h.model.Outdated()
	if err != nil {
		t.Fatal(err)
	}
	out["outdated"] = fmt.Sprint(outdated)
	rec, err := apply.ReadJournal(h.root)
	if err != nil {
		t.Fatal(err)
	}
	out["journal"] = "closed"
	if rec != nil && !rec.Finished() {
		out["journal"] = "open at " + string(rec.Step)
	}
	good, err := apply.ReadKnownGood(h.root)
	if err != nil {
		t.Fatal(err)
	}
	if good != nil {
		out["known good"] = good.Revision + " " + good.CredentialsVersion
	}
	return out
}
