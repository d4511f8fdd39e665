package verbs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/bootstrap/preflight"
	"github.com/proxyward/proxyward/internal/cli"
)

// nowhere replaces the profile's names by addresses at which nothing listens, so that no name is
// looked up.
func (d *desk) nowhere() {
	d.write(d.profile, strings.NewReplacer("proxy.corp.example:3128", "127.0.0.1:9", "api.corp.example:6443", "127.0.0.1:9",
		"[registry.corp.example:5000]", "[]").Replace(profileYAML))
}

func TestPreflightPutsFailuresFirst(t *testing.T) {
	d := newDesk(t)
	d.nowhere()
	out, errs := d.run(exitBroken, d.flags("preflight")...)
	lines := strings.Split(out, "\n")
	if !strings.HasPrefix(lines[1], "FAIL     PW302 connection to the proxy: 127.0.0.1:9") {
		t.Errorf("the second line is %q", lines[1])
	}
	failed, passed := strings.Index(out, "FAIL "), strings.Index(out, "\npass ")
	if failed < 0 || passed < failed {
		t.Errorf("what passed stands before what failed:\n%s", out)
	}
	for _, want := range []string{"    fix: correct the host and port in spec.proxy", "README.md#pw302", "\nbroken now: "} {
		if !strings.Contains(out, want) {
			t.Errorf("the text lacks %q:\n%s", want, out)
		}
	}
	if !strings.Contains(errs, "next: ") {
		t.Errorf("no next step: %q", errs)
	}
	if strings.Contains(out, "which way each host goes, by Go") {
		t.Error("the tables are shown without --details")
	}
}

func TestPreflightDetails(t *testing.T) {
	d := newDesk(t)
	d.nowhere()
	out, errs := d.run(exitBroken, d.flags("preflight", "--details")...)
	for _, want := range []string{"environment of containerd.service", "which way each host goes, by Go's matcher", "https://10.96.255.255", "https://10.99.0.7:5000"} {
		if !strings.Contains(out, want) {
			t.Errorf("the text lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out+errs, password) || strings.Contains(out+errs, encodedPassword) {
		t.Error("the output holds the password")
	}
}

func TestPreflightAsJSON(t *testing.T) {
	d := newDesk(t)
	d.nowhere()
	out, errs := d.run(exitBroken, d.flags("preflight", "-o", "json")...)
	var report preflight.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Outcome != preflight.Broken || report.Count(preflight.Fail) == 0 || errs != "" {
		t.Errorf("outcome %s, %d failures, stderr %q", report.Outcome, report.Count(preflight.Fail), errs)
	}
}

func TestPreflightRefusesBadInput(t *testing.T) {
	d := newDesk(t)
	d.write(d.profile, strings.Replace(profileYAML, "10.20.0.0/16", "10.*", 1))
	out, errs := d.run(2, d.flags("preflight")...)
	if out != "" || !strings.Contains(errs, "spec.noProxy.entries[0]") {
		t.Errorf("stdout %q, stderr %q", out, errs)
	}
}

func TestEachOutcomeHasItsExitCode(t *testing.T) {
	for outcome, want := range map[preflight.Outcome]int{
		preflight.Ready: 0, preflight.Broken: 3, preflight.BreaksAtRestart: 4, preflight.NotTested: 5,
	} {
		if got := cli.ExitCode(endOf(outcome)); got != want {
			t.Errorf("%s ends with %d, want %d", outcome, got, want)
		}
	}
}
