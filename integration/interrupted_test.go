//go:build linux

package integration

import (
	"testing"
	"time"

	"github.com/proxyward/proxyward/integration/program"
)

// An interrupted bootstrap puts back what it began, or leaves it to the dead-man, and the next one
// finishes the job.
func TestC33_AnInterruptedBootstrapLeavesNothingHalfDone(t *testing.T) {
	s := startSite(t)
	if err := s.profile.Give(t.Context(), s.node); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []string{"SIGTERM", "SIGINT"} {
		t.Run(signal, func(t *testing.T) {
			s.run(t, 0, append([]string{"systemd-run", "--unit=change-" + signal, program.Agent, "bootstrap"}, s.profile.Flags()...)...)
			time.Sleep(250 * time.Millisecond) // in the middle of it, wherever that is
			_, _ = s.node.Exec(t.Context(), "systemctl", "kill", "--signal="+signal, "change-"+signal+".service")
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				state, err := s.node.Show(t.Context(), "change-"+signal+".service", "ActiveState")
				if err != nil {
					t.Fatal(err)
				}
				if state != "active" && state != "deactivating" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not end")
				}
			}
			out := s.bootstrap(t, s.profile, 0)
			if got := s.environ(t)["HTTPS_PROXY"]; got != s.profile.Proxy || len(out.Canaries) != 2 {
				t.Errorf("HTTPS_PROXY=%q after it, %d canaries", got, len(out.Canaries))
			}
			if left := s.run(t, 0, "find", "/etc/systemd/system", "-name", "proxyward-deadman*").Stdout; len(left) > 0 {
				t.Errorf("the dead-man is still there:\n%s", left)
			}
			if out, err := program.Report(t.Context(), s.node, "remove"); err != nil || out.ExitCode != 0 {
				t.Fatalf("removing: %v, %+v", err, out)
			}
		})
	}
}
