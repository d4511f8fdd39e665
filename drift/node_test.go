//go:build node

// This test runs on a node of the lab: as root, where systemd is process 1 and containerd runs. The
// integration tests build and run it there.

package drift_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/hostfs"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/systemd"
	"github.com/proxyward/proxyward/runtimes"
)

const (
	unit     = "containerd.service"
	password = "p@ss:w/rd%40#-plant3d"
	escaped  = "p%40ss%3Aw%2Frd%2540%23-plant3d"
	dropIns  = "/etc/systemd/system/containerd.service.d/"
)

// node is the host, with what is desired of it.
type node struct {
	t       *testing.T
	files   *hostfs.Root
	manager *systemd.Manager
	desired drift.Desired
}

func newNode(t *testing.T) *node {
	files, err := hostfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	manager, err := systemd.Connect(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(manager.Close)
	n := &node{t: t, files: files, manager: manager}
	n.want("localhost,.svc")
	return n
}

// want makes a NO_PROXY the desired one.
func (n *node) want(noProxy string) {
	n.t.Helper()
	proxy := proxyenv.NewSecret("http://svc:"+escaped+"@proxy.corp.example:3128", "http://***@proxy.corp.example:3128")
	env := proxyenv.Environment{
		Vars: []proxyenv.Var{
			{Name: "HTTPS_PROXY", Value: proxy}, {Name: "NO_PROXY", Value: proxyenv.PlainSecret(noProxy)},
			{Name: "https_proxy", Value: proxy}, {Name: "no_proxy", Value: proxyenv.PlainSecret(noProxy)},
		},
		Unset: []string{"HTTP_PROXY", "http_proxy"},
	}
	rendered, err := runtimes.Render(runtimes.RenderInput{
		Profile: "corp", Revision: "corp-0", Target: v1alpha1.TargetContainerd, Unit: unit, Environment: env,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.desired = drift.Desired{Desired: rendered, Environment: env, Runtime: runtimes.Runtime{Unit: unit}}
}

func (n *node) plan() (drift.Plan, []drift.Observed) {
	n.t.Helper()
	ref := drift.UnitRef{Unit: unit}
	for _, f := range n.desired.Files {
		ref.Paths = append(ref.Paths, f.Path)
	}
	host := drift.Host{Files: n.files, Systemd: n.manager, Processes: drift.NewProc("/proc")}
	observed := drift.Observe(n.t.Context(), host, []drift.UnitRef{ref})
	plan := drift.Diff([]drift.Desired{n.desired}, observed, "v1")
	if text := fmt.Sprintf("%+v %s", plan.Units, drift.MaskedDiff(plan, observed)); strings.Contains(text, "plant3d") {
		n.t.Errorf("C54: the password is in %s", text)
	}
	return plan, observed
}

// expect compares the plan's kinds of actions, verdict and reasons.
func (n *node) expect(want string) drift.Plan {
	n.t.Helper()
	plan, _ := n.plan()
	var kinds, reasons []string
	for _, a := range plan.Actions {
		kinds = append(kinds, string(a.Kind))
	}
	for _, f := range plan.Units[0].Findings {
		reasons = append(reasons, f.Reason)
	}
	if got := fmt.Sprintf("%v %s %v", kinds, plan.Units[0].InSync, reasons); got != want {
		n.t.Errorf("got  %s\nwant %s\n%+v", got, want, plan.Units)
	}
	return plan
}

// execute does what a plan says.
func (n *node) execute(plan drift.Plan) {
	n.t.Helper()
	for _, a := range plan.Actions {
		var err error
		switch a.Kind {
		case drift.ActionWrite:
			_, err = n.files.WriteFile(a.File.Path, a.File.Content, a.File.Mode)
		case drift.ActionRemove:
			_, err = n.files.Remove(a.File.Path)
		case drift.ActionReload:
			err = n.manager.Reload(n.t.Context())
		case drift.ActionRestart:
			_, err = n.manager.Restart(n.t.Context(), a.Unit, systemd.RestartOptions{})
		}
		if err != nil {
			n.t.Fatalf("%s %s: %v", a.Kind, a.File.Path, err)
		}
	}
}

func (n *node) write(path, content string, mode os.FileMode) {
	n.t.Helper()
	if _, err := n.files.WriteFile(path, []byte(content), mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) remove(path string) {
	n.t.Helper()
	if _, err := n.files.Remove(path); err != nil {
		n.t.Fatal(err)
	}
}

// restart has systemd read the files and restarts the unit.
func (n *node) restart() {
	n.t.Helper()
	if err := n.manager.Reload(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.manager.Restart(n.t.Context(), unit, systemd.RestartOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// environ is what containerd's process has of a variable.
func (n *node) environ(name string) string {
	n.t.Helper()
	u, err := n.manager.Show(n.t.Context(), unit)
	if err != nil {
		n.t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(u.MainPID), "environ"))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, v := range strings.Split(string(raw), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

func TestNodeDrift(t *testing.T) {
	const synced = "[] true []"
	n := newNode(t)
	if err := n.manager.ResetFailed(t.Context(), unit); err != nil {
		t.Fatal(err)
	}

	install := n.expect("[write write reload restart] false [FilesDrifted FilesDrifted RestartNeeded]")
	n.execute(install)
	n.expect(synced)
	if got, want := n.environ("HTTPS_PROXY"), "http://svc:"+escaped+"@proxy.corp.example:3128"; got != want {
		t.Fatalf("C01: HTTPS_PROXY is %q, want %q", got, want)
	}

	// C13: a mode is repaired without a restart.
	if err := os.Chmod(runtimes.EnvPath(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	n.execute(n.expect("[write] false [FilesDrifted]"))
	n.expect(synced)

	// C28: right files, daemon from before.
	n.want("localhost,.svc,registry.corp.example")
	plan := n.expect("[write restart] false [FilesDrifted RestartNeeded]")
	plan.Actions = slices.DeleteFunc(plan.Actions, func(a drift.Action) bool { return a.Kind == drift.ActionRestart })
	n.execute(plan)
	n.execute(n.expect("[restart] false [RestartNeeded]"))
	n.expect(synced)

	// C08: another drop-in loses, in the process too.
	n.write(dropIns+"http-proxy.conf", "[Service]\nEnvironment=HTTP_PROXY=http://other NO_PROXY=other\n", 0o644)
	n.execute(n.expect("[reload] false [ReloadNeeded Shadowed]"))
	n.restart()
	n.expect("[] true [Shadowed]")
	if got := n.environ("HTTP_PROXY") + n.environ("NO_PROXY"); got != "localhost,.svc,registry.corp.example" {
		t.Errorf("C08: the process has %q", got)
	}
	n.remove(dropIns + "http-proxy.conf")

	// C09: a later environment file wins, and no restart is planned against it.
	n.write("/etc/default/other-proxy", "NO_PROXY=other\n", 0o644)
	n.write(dropIns+"zzz.conf", "[Service]\nEnvironmentFile=/etc/default/other-proxy\n", 0o644)
	n.restart()
	if got := n.environ("NO_PROXY"); got != "other" {
		t.Errorf("C09: the process has NO_PROXY=%q, so the judgement below is about nothing", got)
	}
	n.expect("[] false [Overridden]")
	n.remove(dropIns + "zzz.conf")
	n.remove("/etc/default/other-proxy")
	n.execute(n.expect("[reload restart] false [ReloadNeeded RestartNeeded]"))
	n.expect(synced)

	// C12: a link in our file's place.
	n.remove(runtimes.DropInPath(unit))
	if err := os.Symlink("/etc/hostname", runtimes.DropInPath(unit)); err != nil {
		t.Fatal(err)
	}
	if plan, _ := n.plan(); plan.Refused == "" || plan.Units[0].Reason() != v1alpha1.ReasonFilesDrifted {
		t.Errorf("C12: a link is not refused: %+v", plan)
	}
	n.remove(runtimes.DropInPath(unit))
	n.execute(n.expect("[write reload] false [FilesDrifted]"))
	n.expect(synced)

	// C29: a stopped unit stays stopped.
	if err := n.manager.ResetFailed(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	if err := n.manager.Stop(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	n.want("localhost")
	n.execute(n.expect("[write] false [FilesDrifted InSync]"))
	n.expect("[] true [InSync]")
	if err := n.manager.Start(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	n.expect(synced)

	// C14: clean.
	n.desired = drift.Desired{Desired: runtimes.Desired{Target: v1alpha1.TargetContainerd, Unit: unit}, Absent: true}
	n.execute(n.expect("[remove remove reload restart] false [FilesDrifted FilesDrifted RestartNeeded]"))
	n.expect(synced)
	if got := n.environ("HTTPS_PROXY") + n.environ("NO_PROXY"); got != "" {
		t.Errorf("C14: the process still has %q", got)
	}
}

func TestNodeWatch(t *testing.T) {
	n := newNode(t)
	n.execute(n.expect("[write write reload restart] false [FilesDrifted FilesDrifted RestartNeeded]"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dirs, files := drift.WatchPaths(drift.UnitRef{Unit: unit})
	looks, err := drift.Watch(ctx, drift.WatchConfig{
		Host: n.files, Dirs: dirs, Files: files, Systemd: n.manager.Watch(ctx, []string{unit}), FullPass: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	settle := func() {
		for {
			select {
			case <-looks:
			case <-time.After(time.Second):
				return
			}
		}
	}
	settle()
	if err := n.manager.ResetFailed(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(){
		"the drop-in is edited":  func() { n.write(runtimes.DropInPath(unit), runtimes.HeaderMark+"\n", 0o644) },
		"the drop-in is removed": func() { n.remove(runtimes.DropInPath(unit)) },
		"another is written":     func() { n.write("/run/systemd/system/"+unit+".d/x.conf", "[Service]\n", 0o644) },
		"the unit is restarted":  func() { n.restart() },
	}
	for name, change := range changes {
		began := time.Now()
		change()
		select {
		case look := <-looks:
			t.Logf("%s: a look after %v, cause %q", name, time.Since(began).Round(time.Millisecond), look.Cause)
		case <-time.After(10 * time.Second):
			t.Errorf("%s: no look came", name)
		}
		settle()
	}
	n.remove("/run/systemd/system/" + unit + ".d/x.conf")
	n.desired = drift.Desired{Desired: runtimes.Desired{Target: v1alpha1.TargetContainerd, Unit: unit}, Absent: true}
	plan, _ := n.plan()
	n.execute(plan)
	n.expect("[] true []")
}
