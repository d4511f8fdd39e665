package canary_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
)

func TestSummarize(t *testing.T) {
	internal := func(v v1alpha1.Verdict) v1alpha1.CanaryEvidence {
		return v1alpha1.CanaryEvidence{Role: v1alpha1.CanaryInternal, Image: "in", Verdict: v, Message: "seen inside"}
	}
	external := func(v v1alpha1.Verdict) v1alpha1.CanaryEvidence {
		return v1alpha1.CanaryEvidence{Role: v1alpha1.CanaryExternal, Image: "out", Verdict: v, Message: "seen outside"}
	}
	for _, tt := range []struct {
		name     string
		evidence []v1alpha1.CanaryEvidence
		status   metav1.ConditionStatus
		reason   string
		says     string
	}{
		{"both", []v1alpha1.CanaryEvidence{internal(v1alpha1.VerdictVerified), external(v1alpha1.VerdictVerified)}, metav1.ConditionTrue, v1alpha1.ReasonVerified, "each by its expected route"},
		{"C51 closed network", []v1alpha1.CanaryEvidence{internal(v1alpha1.VerdictVerified)}, metav1.ConditionTrue, v1alpha1.ReasonVerified, "internal canary alone"},
		{"external alone", []v1alpha1.CanaryEvidence{external(v1alpha1.VerdictVerified)}, metav1.ConditionTrue, v1alpha1.ReasonVerified, "external canary alone"},
		{"internal failed", []v1alpha1.CanaryEvidence{internal(v1alpha1.VerdictFailed), external(v1alpha1.VerdictWrongRoute)}, metav1.ConditionFalse, v1alpha1.ReasonInternalPullFailed, "seen inside"},
		{"external failed", []v1alpha1.CanaryEvidence{internal(v1alpha1.VerdictVerified), external(v1alpha1.VerdictFailed)}, metav1.ConditionFalse, v1alpha1.ReasonExternalPullFailed, "seen outside"},
		{"wrong route", []v1alpha1.CanaryEvidence{internal(v1alpha1.VerdictWrongRoute), external(v1alpha1.VerdictInconclusive)}, metav1.ConditionFalse, v1alpha1.ReasonWrongRoute, "seen inside"},
		{"C61 inconclusive", []v1alpha1.CanaryEvidence{internal(v1alpha1.VerdictVerified), external(v1alpha1.VerdictInconclusive)}, metav1.ConditionUnknown, v1alpha1.ReasonInconclusive, "seen outside"},
		{"one never run", []v1alpha1.CanaryEvidence{internal(v1alpha1.VerdictVerified), external(v1alpha1.VerdictNeverRun)}, metav1.ConditionUnknown, v1alpha1.ReasonNeverRun, "no canary"},
		{"none", nil, metav1.ConditionUnknown, v1alpha1.ReasonNeverRun, "no canary"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := canary.Summarize(tt.evidence)
			if got.Status != tt.status || got.Reason != tt.reason || !strings.Contains(got.Message, tt.says) {
				t.Errorf("summary is %+v, want %s, %s, saying %q", got, tt.status, tt.reason, tt.says)
			}
		})
	}
}
