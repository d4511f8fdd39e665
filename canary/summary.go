package canary

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Summary is what all evidence of a node comes to, in the terms of the condition
// RuntimeProxyVerified.
type Summary struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Summarize says what a node's evidence comes to: the worst verdict decides. Where only one role
// has evidence, as in a closed network without an external canary, a good verdict says so.
func Summarize(evidence []v1alpha1.CanaryEvidence) Summary {
	worst, found := v1alpha1.CanaryEvidence{}, map[v1alpha1.CanaryRole]bool{}
	for _, e := range evidence {
		found[e.Role] = true
		if severity(e.Verdict) > severity(worst.Verdict) {
			worst = e
		}
	}
	message := fmt.Sprintf("%s canary %q: %s", strings.ToLower(string(worst.Role)), worst.Image, worst.Message)
	switch worst.Verdict {
	case v1alpha1.VerdictFailed:
		reason := v1alpha1.ReasonInternalPullFailed
		if worst.Role == v1alpha1.CanaryExternal {
			reason = v1alpha1.ReasonExternalPullFailed
		}
		return Summary{metav1.ConditionFalse, reason, message}
	case v1alpha1.VerdictWrongRoute:
		return Summary{metav1.ConditionFalse, v1alpha1.ReasonWrongRoute, message}
	case v1alpha1.VerdictInconclusive:
		return Summary{metav1.ConditionUnknown, v1alpha1.ReasonInconclusive, message}
	case v1alpha1.VerdictVerified:
		return Summary{metav1.ConditionTrue, v1alpha1.ReasonVerified, verifiedOn(found)}
	default:
		return Summary{metav1.ConditionUnknown, v1alpha1.ReasonNeverRun, "no canary, or not every one, has been pulled yet"}
	}
}

func verifiedOn(found map[v1alpha1.CanaryRole]bool) string {
	switch {
	case !found[v1alpha1.CanaryExternal]:
		return "verified on the internal canary alone: no external one is configured, so the proxy itself is not proven"
	case !found[v1alpha1.CanaryInternal]:
		return "verified on the external canary alone: no internal one is configured, so the ways around the proxy are not proven"
	default:
		return "internal and external canary were pulled fresh, each by its expected route"
	}
}

// severity orders verdicts from the least to the most telling against a node.
func severity(verdict v1alpha1.Verdict) int {
	switch verdict {
	case v1alpha1.VerdictVerified:
		return 1
	case v1alpha1.VerdictNeverRun:
		return 2
	case v1alpha1.VerdictInconclusive:
		return 3
	case v1alpha1.VerdictWrongRoute:
		return 4
	case v1alpha1.VerdictFailed:
		return 5
	default:
		return 0
	}
}
