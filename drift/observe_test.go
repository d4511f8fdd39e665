package drift

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/internal/systemd"
	"github.com/proxyward/proxyward/runtimes"
)

// fakeSystemd answers each question with the next unit, and the last one for ever.
type fakeSystemd struct {
	units []systemd.Unit
	err   error
}

func (f *fakeSystemd) Show(context.Context, string) (systemd.Unit, error) {
	u := f.units[0]
	if len(f.units) > 1 {
		f.units = f.units[1:]
	}
	return u, f.err
}

// fakeProcesses are processes by PID.
type fakeProcesses map[int][]string

func (f fakeProcesses) Process(pid int) (Process, error) {
	environ, ok := f[pid]
	if !ok {
		return Process{}, fmt.Errorf("reading process %d: %w", pid, ErrGone)
	}
	return Process{Started: time.Unix(1, 0), Environ: environ}, nil
}

type fakeDocker struct {
	proxies DockerProxies
	err     error
}

func (f fakeDocker) Proxies(context.Context, string) (DockerProxies, error) { return f.proxies, f.err }

func active(pid int) systemd.Unit {
	return systemd.Unit{
		LoadState: "loaded", ActiveState: "active", SubState: "running", MainPID: pid, InvocationID: "aa",
		EnvironmentFiles: []systemd.EnvironmentFile{{Path: "/a", Optional: true}, {Path: "/b"}},
		Environment:      systemd.NewEnvironment([]string{"HTTP_PROXY=" + proxyURL, "FOO=" + password}),
	}
}

func TestObserve(t *testing.T) {
	root := tree(t, map[string]string{runtimes.EnvPath(unit): runtimes.HeaderMark + "\n", "/x": "-> /y"})
	host := Host{
		Files:     root,
		Systemd:   &fakeSystemd{units: []systemd.Unit{active(7)}},
		Processes: fakeProcesses{7: {"HTTPS_PROXY=" + proxyURL, "PATH=/bin", "HTTPS_PROXY=second", "no_proxy="}},
	}
	got := Observe(t.Context(), host, []UnitRef{{Unit: unit, Paths: []string{"/x"}}})[0]

	if env := got.Files.Ours[runtimes.EnvPath(unit)]; !env.Exists || !env.Regular || !env.Owned || env.Mode != 0o644 {
		t.Errorf("our environment file is %+v", env)
	}
	if link := got.Files.Ours["/x"]; !link.Exists || link.Regular || link.Mode&fs.ModeSymlink == 0 {
		t.Errorf("the link is %+v", link)
	}
	if dropIn, ok := got.Files.Ours[runtimes.DropInPath(unit)]; !ok || dropIn.Exists {
		t.Errorf("the missing drop-in is %+v, %v", dropIn, ok)
	}
	if l := got.Loaded; l.Absent || l.InvocationID != "aa" || strings.Join(l.EnvironmentFiles, " ") != "-/a /b" || len(l.Environment) != 1 {
		t.Errorf("loaded is %+v", l)
	}
	if p := got.Process; p.PID != 7 || p.Running != runtimes.True || p.Err != nil || len(p.Environ) != 2 || p.Environ[0].Value.Reveal() != proxyURL {
		t.Errorf("process is %+v", p)
	}
	if text := fmt.Sprintf("%v %+v %#v", got.Loaded, got.Process, got.Files.Others); strings.Contains(text, password) {
		t.Errorf("C54: what was observed prints the password: %s", text)
	}
}

func TestObserveProcessThatIsReplacedMeanwhile(t *testing.T) {
	host := Host{
		Files:     tree(t, nil),
		Systemd:   &fakeSystemd{units: []systemd.Unit{active(7), active(8)}},
		Processes: fakeProcesses{8: {"NO_PROXY=x"}},
	}
	got := Observe(t.Context(), host, []UnitRef{{Unit: unit}})[0]
	if got.Process.Err != nil || got.Process.PID != 8 || got.Loaded.MainPID != 8 {
		t.Errorf("process is %+v, loaded %+v", got.Process, got.Loaded)
	}
}

// processSequence gives each look the next environment of the same process.
type processSequence struct{ environs [][]string }

func (s *processSequence) Process(int) (Process, error) {
	environ := s.environs[0]
	if len(s.environs) > 1 {
		s.environs = s.environs[1:]
	}
	return Process{Environ: environ}, nil
}

func TestObserveProcessThatIsJustBeingStarted(t *testing.T) {
	var (
		systemds = []string{"PATH=/bin", "NO_PROXY=systemd's"}
		old      = []string{"INVOCATION_ID=99", "NO_PROXY=old"}
		right    = []string{"INVOCATION_ID=aa", "NO_PROXY=right"}
	)
	tests := map[string]struct {
		environs [][]string
		age      time.Duration
		want     string // of NO_PROXY, "" for an error
	}{
		"between fork and exec":                {[][]string{systemds, systemds, right}, 0, "right"},
		"in exec":                              {[][]string{nil, right}, 0, "right"},
		"in exec, long active":                 {[][]string{nil, right}, time.Hour, "right"},
		"the process before it":                {[][]string{old, right}, 0, "right"},
		"a unit that hides its invocation":     {[][]string{systemds}, 0, "systemd's"},
		"a process that systemd did not start": {[][]string{old}, time.Hour, "old"},
		"a process that hides everything":      {[][]string{nil}, time.Hour, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			u := active(7)
			u.ActiveEnterTime = time.Now().Add(-test.age)
			host := Host{Files: tree(t, nil), Systemd: &fakeSystemd{units: []systemd.Unit{u}}, Processes: &processSequence{test.environs}}
			got := Observe(t.Context(), host, []UnitRef{{Unit: unit}})[0].Process
			value, _ := lookup(got.Environ, "NO_PROXY")
			if value != test.want || (got.Err != nil) != (test.want == "") {
				t.Errorf("NO_PROXY is %q, %v, want %q", value, got.Err, test.want)
			}
		})
	}
}

func TestObserveRunning(t *testing.T) {
	state := func(active string, pid int) *fakeSystemd {
		return &fakeSystemd{units: []systemd.Unit{{LoadState: "loaded", ActiveState: active, MainPID: pid}}}
	}
	tests := map[string]struct {
		host    Host
		running runtimes.Tristate
		failed  bool
	}{
		"plain tree":              {Host{}, runtimes.Unknown, false},
		"stopped":                 {Host{Systemd: state("inactive", 0)}, runtimes.False, false},
		"failed":                  {Host{Systemd: state("failed", 0)}, runtimes.False, false},
		"starting":                {Host{Systemd: state("activating", 7)}, runtimes.Unknown, false},
		"without main process":    {Host{Systemd: state("active", 0)}, runtimes.True, true},
		"processes not seen":      {Host{Systemd: state("active", 7)}, runtimes.True, true},
		"gone, and gone again":    {Host{Systemd: state("active", 7), Processes: fakeProcesses{}}, runtimes.True, true},
		"systemd does not answer": {Host{Systemd: &fakeSystemd{units: []systemd.Unit{{}}, err: errors.New("no answer")}}, runtimes.Unknown, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.host.Files = tree(t, nil)
			got := Observe(t.Context(), test.host, []UnitRef{{Unit: unit}})[0]
			if got.Process.Running != test.running || test.failed != (got.Process.Err != nil) {
				t.Errorf("process is %+v, want running = %v, failed = %v", got.Process, test.running, test.failed)
			}
			if absent := test.host.Systemd == nil; got.Loaded.Absent != absent {
				t.Errorf("systemd is absent = %v, want %v", got.Loaded.Absent, absent)
			}
		})
	}
}

func TestC10_DockerIsAsked(t *testing.T) {
	const masked = "http://xxxxx:xxxxx@proxy.corp.example:3128"
	fromFile := runtimes.Override{File: "/etc/docker/daemon.json", Key: "proxies.http-proxy", Variable: "HTTP_PROXY", Value: "http://x"}
	tests := map[string]struct {
		overrides []runtimes.Override
		docker    Docker
		environ   []string
		want      string
		failed    bool
	}{
		"it says what its environment says": {
			nil, fakeDocker{proxies: DockerProxies{HTTPS: masked, No: "a,b"}},
			[]string{"HTTPS_PROXY=" + proxyURL, "no_proxy=a,b"}, "true []", false,
		},
		"it says something else": {
			nil, fakeDocker{proxies: DockerProxies{HTTPS: "http://u:" + password + "@other:1"}},
			[]string{"HTTPS_PROXY=" + proxyURL}, "true [GET /info HTTPS_PROXY http://***@other:1]", false,
		},
		"the file says so": {
			[]runtimes.Override{fromFile}, fakeDocker{proxies: DockerProxies{HTTP: "http://x"}},
			nil, "true [/etc/docker/daemon.json HTTP_PROXY http://x]", false,
		},
		"it does not answer": {
			[]runtimes.Override{fromFile}, fakeDocker{err: errors.New("no answer")},
			nil, "false [/etc/docker/daemon.json HTTP_PROXY http://x]", true,
		},
		"nobody to ask": {
			[]runtimes.Override{fromFile}, nil,
			nil, "false [/etc/docker/daemon.json HTTP_PROXY http://x]", false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			host := Host{
				Files: tree(t, nil), Systemd: &fakeSystemd{units: []systemd.Unit{active(7)}},
				Processes: fakeProcesses{7: append(test.environ, "PATH=/bin")}, Docker: test.docker,
			}
			ref := UnitRef{Unit: "docker.service", Runtime: runtimes.Runtime{API: runtimes.PullByDocker, Overrides: test.overrides}}
			above := Observe(t.Context(), host, []UnitRef{ref})[0].Above
			var list []string
			for _, o := range above.Overrides {
				list = append(list, o.File+" "+o.Variable+" "+o.Value)
			}
			if got := fmt.Sprintf("%v %v", above.FromDaemon, list); got != test.want || test.failed != (above.Err != nil) {
				t.Errorf("got %s, %v, want %s, failed = %v", got, above.Err, test.want, test.failed)
			}
		})
	}
}

func TestProcReadsARealProcess(t *testing.T) {
	command := exec.Command("sleep", "60")
	command.Env = []string{"NO_PROXY=" + strings.Repeat("x", 100_000), "EMPTY=", "MULTI=a\nb"}
	began := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	proc := NewProc("/proc")
	var got Process
	for len(got.Environ) == 0 { // in the middle of exec it has none
		var err error
		if got, err = proc.Process(command.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(got.Environ, "\x00") != strings.Join(command.Env, "\x00") {
		t.Errorf("the environment has %d variables, want exactly those given", len(got.Environ))
	}
	// The kernel tells the boot time in whole seconds.
	if d := got.Started.Sub(began); d < -3*time.Second || d > 3*time.Second {
		t.Errorf("it started at %v, want about %v", got.Started, began)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitForZombie(t, command.Process.Pid)
	if _, err := proc.Process(command.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("a zombie gives %v, want ErrGone", err)
	}
	_ = command.Wait() // it was killed
	if _, err := proc.Process(command.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("an ended process gives %v, want ErrGone", err)
	}
}

// waitForZombie waits until a killed process has ended.
func waitForZombie(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Fatal("the process does not end")
}
