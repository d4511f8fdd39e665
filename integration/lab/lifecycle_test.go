//go:build linux

package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/integration/lab"
)

// ownerEnv makes the test program bring a lab up and wait for its end: it plays
// the run that is interrupted.
const ownerEnv = "LAB_TEST_OWNER"

func TestMain(m *testing.M) {
	if name := os.Getenv(ownerEnv); name != "" {
		os.Exit(own(name, os.Getenv("LAB_TEST_STATE")))
	}
	os.Exit(m.Run())
}

func own(name, stateDir string) int {
	cfg := lab.Config{Name: name, StateDir: stateDir, Nodes: []lab.NodeSpec{{Name: "n1"}}, Progress: os.Stdout}
	if _, err := lab.Up(context.Background(), cfg); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("READY")
	time.Sleep(time.Hour)
	return 0
}

// killOwner starts a process that owns a lab and kills it when its output
// holds the text, or after the time given.
func killOwner(t *testing.T, name, stateDir, when string, after time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), ownerEnv+"="+name, "LAB_TEST_STATE="+stateDir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	buf := make([]byte, 4096)
	for when == "" || !strings.Contains(seen.String(), when) {
		n, err := out.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			break
		}
	}
	if when != "" && !strings.Contains(seen.String(), when) {
		t.Fatalf("the owner never said %q: %s", when, seen.String())
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the owner ended by itself: %v: %s", err, seen.String())
	}
}

// stateDir makes a folder for labs. The test's own temporary folder is closed
// to squid's user.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "proxyward-lab-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Not recursive: what a lab left must be seen, not removed.
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestUpRefusesAClosedStateFolder(t *testing.T) {
	lab.Require(t)
	_, err := lab.Up(t.Context(), lab.Config{Name: "closed", StateDir: filepath.Join(t.TempDir(), "state")})
	if err == nil || !strings.Contains(err.Error(), "squid") {
		t.Errorf("got %v", err)
	}
}

func TestDownRemovesWhatAKilledOwnerLeft(t *testing.T) {
	lab.Require(t)
	cases := []struct {
		name  string
		when  string
		after time.Duration
	}{
		{"once it was up", "READY", time.Minute},
		{"with the network made", "network", time.Minute},
		{"with the proxies up", "proxies", time.Minute},
	}
	for _, ms := range []int{300, 500, 700, 900, 1100, 1400} {
		cases = append(cases, struct {
			name  string
			when  string
			after time.Duration
		}{fmt.Sprintf("after %d ms", ms), "", time.Duration(ms) * time.Millisecond})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			state := stateDir(t)
			killOwner(t, "killed", state, c.when, c.after)
			claimed := indexes(t, state)
			left := traces(t, state, claimed)
			// A namespace, a link, a mount, cgroups, the services, the node's daemons.
			if c.when == "READY" && len(left) < 20 {
				t.Errorf("the killed owner left only %q: this test sees too little", left)
			}
			for range 2 { // the second time there is nothing to do
				if err := lab.Down(t.Context(), "killed", state, t.Output()); err != nil {
					t.Fatal(err)
				}
			}
			if left := traces(t, state, claimed); len(left) > 0 {
				t.Errorf("left after Down: %q", left)
			}
		})
	}
}

func TestUpRemovesALabWhoseOwnerIsGone(t *testing.T) {
	lab.Require(t)
	state := stateDir(t)
	killOwner(t, "orphan", state, "READY", time.Minute)
	claimed := indexes(t, state)
	if len(claimed) != 1 {
		t.Fatalf("claims of the orphan: %q", claimed)
	}
	// It may get the same index, so it has to be gone before the look.
	if err := lab.Start(t, lab.Config{}).Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, state, nil); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if got := indexes(t, state); len(got) > 0 {
		t.Errorf("claims left: %q", got)
	}
}

func TestLabsSideBySide(t *testing.T) {
	lab.Require(t)
	state := stateDir(t)
	a := lab.Start(t, lab.Config{Name: "side-a", StateDir: state, Nodes: []lab.NodeSpec{{Name: "n1"}}})
	b := lab.Start(t, lab.Config{Name: "side-b", StateDir: state, Nodes: []lab.NodeSpec{{Name: "n1"}}})
	claimed := indexes(t, state)
	if len(claimed) != 2 || a.Node("n1").IP == b.Node("n1").IP {
		t.Errorf("claims %q, addresses %s and %s", claimed, a.Node("n1").IP, b.Node("n1").IP)
	}
	if _, err := lab.Up(t.Context(), lab.Config{Name: "side-a", StateDir: state}); err == nil {
		t.Error("a second lab of the same name came up")
	}
	if err := lab.Down(t.Context(), "side-a", state, nil); err == nil {
		t.Error("a lab was removed by name while its owner has it")
	}
	if err := a.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Down(t.Context()); err != nil {
		t.Fatalf("the second Down: %v", err)
	}
	// The other one is unharmed.
	if err := pull(t, b.Node("n1"), push(t, b, lab.Internal).Ref, b.Registry(lab.Internal)); err != nil {
		t.Error(err)
	}
	if err := b.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, state, nil); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// indexes are those that the labs of a state folder have claimed.
func indexes(t *testing.T, stateDir string) []string {
	t.Helper()
	claims, err := filepath.Glob("/run/proxyward-lab/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, c := range claims {
		if raw, err := os.ReadFile(c); err == nil && strings.HasPrefix(string(raw), stateDir+"/") {
			list = append(list, filepath.Base(c))
		}
	}
	return list
}

// traces lists everything on the machine that the labs of a state folder, with
// these indexes, have and may leave behind. Labs of others are not looked at.
func traces(t *testing.T, stateDir string, indexes []string) []string {
	t.Helper()
	globs := []string{stateDir + "/*"}
	for _, i := range indexes {
		name := "pwlab" + i
		globs = append(globs,
			"/run/proxyward-lab/"+i, "/sys/class/net/"+name, "/run/netns/"+name+"-*", "/run/systemd/nspawn/*/"+name+"-*",
			"/sys/fs/cgroup/"+name+"-*", "/sys/fs/cgroup/*/"+name+"-*",
		)
	}
	var found []string
	for _, g := range globs {
		paths, err := filepath.Glob(g)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if point := strings.Fields(line)[1]; strings.HasPrefix(point, stateDir) {
			found = append(found, "mount "+point)
		}
	}
	return append(found, processes(t, stateDir, indexes)...)
}

// processes are those that name the folder, or are in a cgroup of the labs.
func processes(t *testing.T, stateDir string, indexes []string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, dir := range dirs {
		command, err := os.ReadFile(dir + "/cmdline")
		if err != nil || len(command) == 0 {
			continue // it ended, or is a thread of the kernel
		}
		groups, err := os.ReadFile(dir + "/cgroup")
		if err != nil {
			continue
		}
		ours := bytes.Contains(command, []byte(stateDir))
		for _, i := range indexes {
			ours = ours || bytes.Contains(groups, []byte("/pwlab"+i+"-"))
		}
		if ours {
			found = append(found, fmt.Sprintf("process %s: %q", filepath.Base(dir), command))
		}
	}
	return found
}
