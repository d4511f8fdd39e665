package canary

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/pull"
	"github.com/proxyward/proxyward/canary/witness"
)

const (
	// bySockets is how arrival was judged where the runtime itself tells nothing.
	bySockets = "socket counters"
	// unjudged is said where neither does.
	unjudged = "unknown"
	// failDaemonAlone is the kind of a failure that this process does not meet.
	failDaemonAlone = "DaemonAlone"
)

// observation is everything that one proof saw.
type observation struct {
	expected expectation
	arrival  pull.Arrival
	// pullErr is why there is no image: it could not be removed before, or not be pulled.
	pullErr error
	finding witness.Finding
	// walk that was made to explain what was seen; nil when none was needed.
	walk *WalkReport
}

// needsExplaining says that only the registry's own answers can tell what happened.
func (o observation) needsExplaining() bool {
	return o.pullErr != nil || o.finding.Route == v1alpha1.RouteUnknown && o.finding.Received > 0 || !o.expectedRoute()
}

// expectedRoute says that nothing was seen that is not expected.
func (o observation) expectedRoute() bool {
	return o.finding.Route == v1alpha1.RouteUnknown || slices.Contains(o.expected.accepted, o.finding.Route)
}

// concluded fills what was seen into the evidence and comes to its verdict.
func concluded(evidence v1alpha1.CanaryEvidence, o observation) v1alpha1.CanaryEvidence {
	evidence.Digest = o.arrival.Digest
	evidence.Duration = metav1.Duration{Duration: o.arrival.Took}
	if o.finding.Route != "" {
		evidence.Route = o.finding.Route
	}
	if o.finding.Remote.IsValid() {
		evidence.Remote = o.finding.Remote.String()
	}
	if o.pullErr != nil {
		return o.failed(evidence)
	}
	evidence.Bytes, evidence.BytesJudgedBy = o.arrived()
	switch {
	case len(o.arrival.Held) > 0:
		evidence.Verdict = v1alpha1.VerdictInconclusive
		evidence.Message = fmt.Sprintf("the runtime did not transfer %s: another image, namespace or lease holds the same bytes; "+
			"name a canary image whose layers nothing else has", strings.Join(o.arrival.Held, ", "))
	case evidence.Bytes == 0:
		evidence.Verdict = v1alpha1.VerdictInconclusive
		evidence.Message = join("it is unknown whether any byte of a layer was transferred", o.finding.Why)
	case !o.expectedRoute() && o.expected.doubt != "":
		evidence.Verdict = v1alpha1.VerdictInconclusive
		evidence.Message = join(o.wrongRoute(evidence.Role), "yet what to expect is in doubt: "+o.expected.doubt)
	case !o.expectedRoute():
		evidence.Verdict = v1alpha1.VerdictWrongRoute
		evidence.Message = o.wrongRoute(evidence.Role)
	case o.finding.Route == v1alpha1.RouteUnknown:
		evidence.Verdict = v1alpha1.VerdictInconclusive
		evidence.Message = "the image was pulled, and its route is unknown: " + o.finding.Why
	default:
		evidence.Verdict = v1alpha1.VerdictVerified
	}
	return evidence
}

// arrived returns the layer bytes that were transferred and how that was judged.
func (o observation) arrived() (int64, string) {
	if o.arrival.JudgedBy != "" {
		return o.arrival.Bytes, string(o.arrival.JudgedBy)
	}
	// Without the runtime's word only a positively identified flow of the right order counts.
	if o.finding.Route == v1alpha1.RouteUnknown || o.finding.Received == 0 {
		return 0, unjudged
	}
	return int64(min(o.finding.Received, 1<<62)), bySockets
}

func (o observation) failed(evidence v1alpha1.CanaryEvidence) v1alpha1.CanaryEvidence {
	evidence.Verdict = v1alpha1.VerdictFailed
	if _, ok := errors.AsType[*pull.HeldError](o.pullErr); ok {
		evidence.Verdict = v1alpha1.VerdictInconclusive
		evidence.Message = o.pullErr.Error()
		return evidence
	}
	evidence.Message = o.pullErr.Error()
	switch {
	case o.walk == nil:
	case o.walk.Failure == nil:
		evidence.Failure = failDaemonAlone
		evidence.Message = join(evidence.Message, "the same way serves this process, so see the daemon's log and what its environment really is")
	default:
		evidence.Failure, evidence.Hop = string(o.walk.Failure.Kind), o.walk.Failure.Hop
		if o.walk.Failure.Inconclusive() {
			evidence.Verdict = v1alpha1.VerdictInconclusive
		}
		evidence.Message = join(o.walk.Failure.Error(), "the daemon said: "+evidence.Message)
	}
	return evidence
}

// wrongRoute says which way was taken, which one was meant, and what to look at.
func (o observation) wrongRoute(role v1alpha1.CanaryRole) string {
	message := fmt.Sprintf("the bytes came by route %s from %s (%s), expected was %s", o.finding.Route, o.finding.Remote, o.finding.Name, o.expected.route)
	if role == v1alpha1.CanaryInternal {
		message += ": add the registry to registries.internal"
	} else {
		message += ": the daemon may run with another environment, or an entry of noProxy matches the registry"
	}
	if o.walk == nil {
		return message
	}
	for _, hop := range o.walk.Hops {
		if hop.Purpose == PurposeBlob || hop.Purpose == PurposeRedirect {
			message = join(message, fmt.Sprintf("by the given environment %s goes %s (%s)", hop.Host, hop.Route, hop.Why))
		}
	}
	return message
}

// join puts two parts of a message together.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
