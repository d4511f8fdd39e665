package bootstrap

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
)

func TestVerdict(t *testing.T) {
	units := func(s metav1.ConditionStatus) []v1alpha1.UnitStatus { return []v1alpha1.UnitStatus{{InSync: s}} }
	pulled := func(v v1alpha1.Verdict) []v1alpha1.CanaryEvidence {
		return []v1alpha1.CanaryEvidence{{Verdict: v1alpha1.VerdictVerified}, {Verdict: v}}
	}
	tests := []struct {
		name         string
		report       Report
		files, proof Verdict
	}{
		{"done and proven", Report{Outcome: apply.Done, Units: units("True"), Canaries: pulled(v1alpha1.VerdictVerified)}, VerdictGood, VerdictGood},
		{"nothing to do", Report{Outcome: apply.Unchanged, Units: units("True")}, VerdictGood, VerdictGood},
		{"the daemon is from before the files", Report{Outcome: apply.Done, Units: units("False")}, VerdictGood, VerdictFailed},
		{"somebody else's setting wins", Report{Outcome: apply.Unchanged, Units: units("False")}, VerdictGood, VerdictFailed},
		{"nothing could be said of a daemon", Report{Outcome: apply.Done, Units: units("Unknown")}, VerdictGood, VerdictUntested},
		{"a pull failed", Report{Outcome: apply.Unchanged, Canaries: pulled(v1alpha1.VerdictFailed)}, VerdictGood, VerdictFailed},
		{"a wrong route", Report{Outcome: apply.Unchanged, Canaries: pulled(v1alpha1.VerdictWrongRoute)}, VerdictGood, VerdictFailed},
		{"a registry is down", Report{Outcome: apply.Unchanged, Canaries: pulled(v1alpha1.VerdictInconclusive)}, VerdictGood, VerdictUntested},
		{"inconclusive", Report{Outcome: apply.Inconclusive}, VerdictGood, VerdictUntested},
		{"refused", Report{Outcome: apply.ProbeFailed}, VerdictFailed, VerdictFailed},
		{"undone", Report{Outcome: apply.RolledBack, Units: units("True")}, VerdictFailed, VerdictFailed},
		{"interrupted", Report{Outcome: apply.Interrupted}, VerdictFailed, VerdictFailed},
	}
	for _, tt := range tests {
		if got := tt.report.Verdict(StageFiles); got != tt.files {
			t.Errorf("%s, after the files: %s, want %s", tt.name, got, tt.files)
		}
		if got := tt.report.Verdict(StageProof); got != tt.proof {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.proof)
		}
	}
}

func TestClean(t *testing.T) {
	unit := func(sync metav1.ConditionStatus, state string) []v1alpha1.UnitStatus {
		return []v1alpha1.UnitStatus{{InSync: sync, State: state}}
	}
	tests := []struct {
		name   string
		report Report
		want   bool
	}{
		{"nothing was there", Report{Outcome: apply.Unchanged}, true},
		{"a clean daemon", Report{Outcome: apply.Done, Units: unit("True", "active (running)")}, true},
		{"a plain tree", Report{Outcome: apply.Done, Units: unit("Unknown", "no systemd")}, true},
		{"a unit that was uninstalled", Report{Outcome: apply.Done, Units: unit("Unknown", "not-found")}, true},
		{"a daemon that could not be read", Report{Outcome: apply.Done, Units: unit("Unknown", "active (running)")}, false},
		{"a daemon that kept its environment", Report{Outcome: apply.Done, Units: unit("False", "active (running)")}, false},
		{"undone", Report{Outcome: apply.RolledBack, Units: unit("True", "active (running)")}, false},
	}
	for _, tt := range tests {
		if got := tt.report.Clean(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
