//go:build linux

package integration

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/integration/program"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// The new environment makes containerd hang in its start, and the program that changed it is killed
// right then: the dead-man, which nothing of Proxyward watches over, brings the old state back.
func TestC32_TheDeadManEndsWhatAKilledBootstrapBegan(t *testing.T) {
	s := startSite(t)
	s.bootstrap(t, s.profile, 0)
	environ, files := s.owned(t), s.files(t)

	next := s.profile
	auth := s.Proxy(lab.Auth)
	next.Proxy, next.Username, next.Password = auth.URL(), auth.User, auth.Password
	port := next.Proxy[strings.LastIndex(next.Proxy, ":"):]
	hang := "[Service]\nTimeoutStartSec=30s\nExecStartPre=/bin/sh -c 'case \"$$HTTPS_PROXY\" in *" + port + "*) exec sleep 600;; esac'\n"
	s.write(t, "/etc/systemd/system/containerd.service.d/50-hang.conf", hang)
	s.run(t, 0, "systemctl", "daemon-reload")
	if err := next.Give(t.Context(), s.node); err != nil {
		t.Fatal(err)
	}

	s.run(t, 0, append([]string{"systemd-run", "--unit=change", program.Agent, "bootstrap"}, next.Flags()...)...)
	for deadline := time.Now().Add(30 * time.Second); s.show(t, "ActiveState") != "activating"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not get to its new start: it is %s", containerd, s.show(t, "ActiveState"))
		}
	}
	s.run(t, 0, "systemctl", "kill", "--signal=SIGKILL", "change.service")
	if state := s.run(t, 0, "systemctl", "is-active", "proxyward-deadman.timer").Stdout; strings.TrimSpace(string(state)) != "active" {
		t.Fatalf("the dead-man's timer is %s", state)
	}

	// What the timer does in a few minutes.
	s.run(t, 0, "systemctl", "start", "proxyward-deadman.service")
	if err := s.node.WaitUnit(t.Context(), containerd, "active", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := s.owned(t); !maps.Equal(got, environ) {
		t.Errorf("the daemon's environment is %v, was %v", got, environ)
	}
	if got := s.files(t); got != files {
		t.Errorf("files are\n%s\nwere\n%s", got, files)
	}
	if left := s.run(t, 0, "find", "/etc/systemd/system", "-name", "proxyward-deadman*").Stdout; len(left) > 0 {
		t.Errorf("the dead-man is still there:\n%s", left)
	}
	s.bootstrap(t, s.profile, 0)
}

// owned are the variables of the daemon that Proxyward decides on.
func (s *site) owned(t *testing.T) map[string]string {
	t.Helper()
	env, owned := s.environ(t), proxyenv.OwnedVariables()
	maps.DeleteFunc(env, func(name, _ string) bool { return !slices.Contains(owned, name) })
	return env
}
