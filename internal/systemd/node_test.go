//go:build node

// These tests run on a node of the lab: as root, where systemd is process 1. The integration tests
// build and run them there.

package systemd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// managers returns a Manager over each of the two sockets.
func managers(t *testing.T) map[string]*Manager {
	t.Helper()
	out := map[string]*Manager{}
	for name, root := range roots(t) {
		m, err := Connect(t.Context(), root)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(m.Close)
		out[name] = m
	}
	return out
}

// roots are two ways to see the host: one with both sockets, one with systemd's own alone.
func roots(t *testing.T) map[string]string {
	t.Helper()
	private := t.TempDir()
	if err := os.MkdirAll(filepath.Join(private, "run/systemd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(privateSocket, filepath.Join(private, privateSocket)); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"bus": "/", "private": private}
}

// install writes a unit and has systemd load it; both are undone at the end.
func install(t *testing.T, m *Manager, name, text string) {
	t.Helper()
	file := filepath.Join("/etc/systemd/system", name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Stop(ctx, name); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		if err := m.ResetFailed(ctx, name); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		if err := os.Remove(file); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		if err := m.Reload(ctx); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	if err := m.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func show(t *testing.T, m *Manager, unit string) Unit {
	t.Helper()
	u, err := m.Show(t.Context(), unit)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const simple = "[Service]\nExecStart=/bin/sleep infinity\n"

func TestNodeShow(t *testing.T) {
	for name, m := range managers(t) {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile("/run/pw-show.env", []byte("B=c\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			install(t, m, "pw-show.service", "[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=60\n"+
				"[Service]\nExecStart=/bin/sleep infinity\nKillMode=process\nEnvironment=A=b\n"+
				"EnvironmentFile=-/run/none.env\nEnvironmentFile=/run/pw-show.env\nUnsetEnvironment=HTTP_PROXY\nPassEnvironment=X\n")
			install(t, m, "pw-bound.service", "[Unit]\nPartOf=pw-show.service\n"+simple)
			if err := m.Start(t.Context(), "pw-bound.service"); err != nil {
				t.Fatal(err)
			}
			if err := m.Start(t.Context(), "pw-show.service"); err != nil {
				t.Fatal(err)
			}
			u := show(t, m, "pw-show.service")
			if u.LoadState != "loaded" || u.ActiveState != "active" || u.SubState != "running" || u.Type != "simple" || u.KillMode != "process" ||
				u.MainPID == 0 || len(u.InvocationID) != 32 || u.JobID != 0 || u.Result != "success" || !u.Running() ||
				u.StartLimitBurst != 3 || u.StartLimitInterval != time.Minute || time.Since(u.ActiveEnterTime) > time.Minute ||
				u.FragmentPath != "/etc/systemd/system/pw-show.service" {
				t.Errorf("unit is %+v", u)
			}
			files := []EnvironmentFile{{"/run/none.env", true}, {"/run/pw-show.env", false}}
			if !slices.Equal(u.EnvironmentFiles, files) || !slices.Equal(u.Environment.Reveal(), []string{"A=b"}) ||
				!slices.Equal(u.UnsetEnvironment, []string{"HTTP_PROXY"}) || !slices.Equal(u.PassEnvironment, []string{"X"}) {
				t.Errorf("environment is %+v %q", u, u.Environment.Reveal())
			}
			if !slices.Contains(u.PropagatesRestart, "pw-bound.service") {
				t.Errorf("a restart propagates to %q", u.PropagatesRestart)
			}
			if u := show(t, m, "pw-none.service"); u.LoadState != "not-found" || u.Running() {
				t.Errorf("a unit that does not exist is %+v", u)
			}
		})
	}
}

func TestNodeReloadIsRead(t *testing.T) {
	for name, m := range managers(t) {
		t.Run(name, func(t *testing.T) {
			install(t, m, "pw-reload.service", simple)
			dir := "/etc/systemd/system/pw-reload.service.d"
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			for _, value := range []string{"one", "two", "three"} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(dir+"/a.conf", []byte("[Service]\nEnvironment=V="+value+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := m.Reload(t.Context()); err != nil {
					t.Fatal(err)
				}
				u := show(t, m, "pw-reload.service")
				if !slices.Equal(u.Environment.Reveal(), []string{"V=" + value}) || !slices.Equal(u.DropInPaths, []string{dir + "/a.conf"}) || u.NeedDaemonReload {
					t.Errorf("after Reload there is %q of %q", u.Environment.Reveal(), u.DropInPaths)
				}
			}
		})
	}
}

func TestNodeRestartGivesProof(t *testing.T) {
	for name, m := range managers(t) {
		for kind, text := range map[string]string{
			"simple": simple,
			"notify": "[Service]\nType=notify\nNotifyAccess=all\nExecStart=/bin/sh -c 'sleep 0.3; systemd-notify --ready; exec sleep infinity'\n",
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				install(t, m, "pw-restart.service", text)
				if err := m.Start(t.Context(), "pw-restart.service"); err != nil {
					t.Fatal(err)
				}
				before := show(t, m, "pw-restart.service")
				proof, err := m.Restart(t.Context(), "pw-restart.service", RestartOptions{Timeout: 30 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				after := show(t, m, "pw-restart.service")
				want := Proof{
					Unit:                 "pw-restart.service",
					PreviousInvocationID: before.InvocationID, InvocationID: after.InvocationID,
					PreviousMainPID: before.MainPID, MainPID: after.MainPID, Duration: proof.Duration,
				}
				if proof != want || after.InvocationID == before.InvocationID || after.MainPID == before.MainPID || proof.Duration <= 0 {
					t.Errorf("proof is %+v, want %+v", proof, want)
				}
			})
		}
	}
}

func TestNodeC29_StoppedUnitStaysStopped(t *testing.T) {
	m := managers(t)["bus"]
	install(t, m, "pw-stopped.service", simple)
	_, err := m.Restart(t.Context(), "pw-stopped.service", RestartOptions{})
	var stopped *NotRunningError
	if !errors.As(err, &stopped) || stopped.ActiveState != "inactive" {
		t.Errorf("Restart = %v, want NotRunningError", err)
	}
	if u := show(t, m, "pw-stopped.service"); u.Running() {
		t.Errorf("the unit was started: %+v", u)
	}
}

func TestNodeC32_RestartThatFails(t *testing.T) {
	m := managers(t)["bus"]
	// The condition file lets the unit run once and makes it fail from then on.
	const good = "/run/pw-good"
	tests := map[string]struct {
		text string
		want any
	}{
		"notify that exits": {"[Service]\nType=notify\nNotifyAccess=all\nExecStart=/bin/sh -c 'test -e " + good + " || exit 7; systemd-notify --ready; exec sleep infinity'\n", new(*JobFailedError)},
		"simple that exits": {"[Service]\nExecStart=/bin/sh -c 'test -e " + good + " || exit 7; exec sleep infinity'\n", new(*JobFailedError)},
		"simple that is restarted": {"[Service]\nRestart=always\nRestartSec=200ms\nExecStart=/bin/sh -c 'test -e " + good +
			" || { sleep 0.3; exit 7; }; exec sleep infinity'\n", new(*JobFailedError)},
		"notify that hangs":        {"[Service]\nType=notify\nNotifyAccess=all\nExecStart=/bin/sh -c 'test -e " + good + " && systemd-notify --ready; exec sleep infinity'\n", new(*TimeoutError)},
		"notify that is timed out": {"[Service]\nType=notify\nTimeoutStartSec=1\nNotifyAccess=all\nExecStart=/bin/sh -c 'test -e " + good + " && systemd-notify --ready; exec sleep infinity'\n", new(*JobFailedError)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(good, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			install(t, m, "pw-fails.service", test.text)
			if err := m.Start(t.Context(), "pw-fails.service"); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(good); err != nil {
				t.Fatal(err)
			}
			_, err := m.Restart(t.Context(), "pw-fails.service", RestartOptions{Timeout: 4 * time.Second})
			if err == nil || !errors.As(err, test.want) {
				t.Errorf("Restart = %v, want %T", err, test.want)
			}
		})
	}
}

func TestNodeC30_StartLimit(t *testing.T) {
	m := managers(t)["bus"]
	install(t, m, "pw-limit.service", "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=60\n"+simple)
	if err := m.Start(t.Context(), "pw-limit.service"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Restart(t.Context(), "pw-limit.service", RestartOptions{Timeout: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	_, err := m.Restart(t.Context(), "pw-limit.service", RestartOptions{Timeout: 10 * time.Second})
	var limit *StartLimitError
	if !errors.As(err, &limit) || limit.Burst != 2 || limit.Interval != "1m0s" {
		t.Fatalf("the third start = %v, want StartLimitError", err)
	}
	if err := m.ResetFailed(t.Context(), "pw-limit.service"); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context(), "pw-limit.service"); err != nil {
		t.Errorf("Start after ResetFailed = %v", err)
	}
}

func TestNodeUnitsOfOurOwn(t *testing.T) {
	m := managers(t)["private"]
	install(t, m, "pw-own.service", simple)
	if err := m.Enable(t.Context(), "pw-own.service"); err == nil || !strings.Contains(err.Error(), "[Install]") {
		t.Errorf("Enable without [Install] = %v", err)
	}
	install(t, m, "pw-own.timer", "[Timer]\nOnActiveSec=1h\nOnBootSec=1h\n[Install]\nWantedBy=timers.target\n")
	if err := m.Enable(t.Context(), "pw-own.timer"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat("/etc/systemd/system/timers.target.wants/pw-own.timer"); err != nil {
		t.Errorf("the timer is not enabled: %v", err)
	}
	for range 2 {
		if err := m.Disable(t.Context(), "pw-own.timer"); err != nil {
			t.Errorf("Disable = %v", err)
		}
	}
	if _, err := os.Lstat("/etc/systemd/system/timers.target.wants/pw-own.timer"); err == nil {
		t.Error("the timer is still enabled")
	}
	if err := m.Start(t.Context(), "pw-nothing.service"); !errors.Is(err, ErrNoSuchUnit) {
		t.Errorf("Start of nothing = %v, want ErrNoSuchUnit", err)
	}
}

// until waits for an event.
func until(t *testing.T, events <-chan Event, want Event) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case got, open := <-events:
			if !open {
				t.Fatal("the channel is closed")
			}
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("no %+v came", want)
		}
	}
}

func TestNodeWatchAcrossReexec(t *testing.T) {
	for name, m := range managers(t) {
		t.Run(name, func(t *testing.T) {
			install(t, m, "pw-watch.service", simple)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			events := m.Watch(ctx, []string{"pw-watch.service"})
			time.Sleep(time.Second) // until it is subscribed, which nothing tells
			if err := m.Start(t.Context(), "pw-watch.service"); err != nil {
				t.Fatal(err)
			}
			until(t, events, Event{EventUnit, "pw-watch.service"})
			if err := m.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			until(t, events, Event{Kind: EventReloaded})

			before := show(t, m, "pw-watch.service")
			if out, err := exec.Command("systemctl", "daemon-reexec").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			until(t, events, Event{Kind: EventReconnected})
			proof, err := m.Restart(t.Context(), "pw-watch.service", RestartOptions{Timeout: 20 * time.Second})
			if err != nil || proof.PreviousInvocationID != before.InvocationID {
				t.Errorf("Restart after daemon-reexec = %+v, %v", proof, err)
			}
			until(t, events, Event{EventUnit, "pw-watch.service"})
			cancel()
			for range events { // it ends
			}
		})
	}
}
