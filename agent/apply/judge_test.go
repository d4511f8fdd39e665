package apply_test

import (
	"context"
	"errors"
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/systemd"
	"github.com/proxyward/proxyward/runtimes"
)

// oneUnit is a systemd and a proc with one daemon.
type oneUnit struct {
	unit    systemd.Unit
	environ []string
	gone    error
}

func (o oneUnit) Show(context.Context, string) (systemd.Unit, error) { return o.unit, nil }
func (o oneUnit) Process(int) (drift.Process, error) {
	return drift.Process{Environ: o.environ}, o.gone
}

func TestDriftJudge(t *testing.T) {
	h := newHost(t, scratch(t))
	file := func(path string) runtimes.File {
		content, err := h.root.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := h.root.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return runtimes.File{Path: path, Content: content, Mode: info.Mode()}
	}
	desired := drift.Desired{
		Desired: runtimes.Desired{Unit: containerd, Files: []runtimes.File{file(envFile), file(dropIn)}},
		Environment: proxyenv.Environment{Vars: []proxyenv.Var{
			{Name: "HTTPS_PROXY", Value: proxyenv.PlainSecret("http://old:3128")},
		}},
	}
	good := systemd.Unit{
		Name: containerd, LoadState: "loaded", ActiveState: "active", MainPID: 7,
		DropInPaths: []string{dropIn}, EnvironmentFiles: []systemd.EnvironmentFile{{Path: envFile, Optional: true}},
	}
	unread := good
	unread.DropInPaths = nil
	environ := []string{"HTTPS_PROXY=http://old:3128"}
	for _, tc := range []struct {
		name            string
		host            oneUnit
		loaded, running bool
	}{
		{"all is well", oneUnit{unit: good, environ: environ}, true, true},
		{"the drop-in is not loaded", oneUnit{unit: unread, environ: environ}, false, true},
		{"the process has another environment", oneUnit{unit: good, environ: []string{"HTTPS_PROXY=http://x:1"}}, true, false},
		{"the process cannot be read", oneUnit{unit: good, gone: errDown}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := apply.DriftJudge{
				Host:    drift.Host{Files: h.root, Systemd: tc.host, Processes: tc.host},
				Desired: []drift.Desired{desired},
			}
			err := j.Loaded(t.Context(), containerd)
			var loaded *apply.LoadedError
			if (err == nil) != tc.loaded || err != nil && !errors.As(err, &loaded) {
				t.Errorf("loaded: %v", err)
			}
			err = j.Running(t.Context(), containerd)
			var running *apply.RestartError
			if (err == nil) != tc.running || err != nil && !errors.As(err, &running) {
				t.Errorf("running: %v", err)
			}
			if err := errors.Join(j.Loaded(t.Context(), docker), j.Running(t.Context(), docker)); err != nil {
				t.Errorf("a unit that is not desired was judged: %v", err)
			}
		})
	}
}
