package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// stage is how far an approval has come.
type stage int

const (
	// none is outstanding.
	stageFree stage = iota
	// unanswered: there is none, and the agent has not said yet that it knows.
	stageUnanswered
	// pending: written, and the agent may consume it at any moment.
	stagePending
	// void: the agent knows it and its plan is another one by now.
	stageVoid
	// running: consumed, and at work.
	stageRunning
	// over: consumed, and at an end.
	stageOver
)

func stageOf(np *v1alpha1.NodeProxy) stage {
	a, s := np.Spec.Approval, &np.Status
	switch s.Phase {
	case v1alpha1.PhaseApplying, v1alpha1.PhaseProving, v1alpha1.PhaseInterrupted:
		return stageRunning
	}
	switch {
	case a == nil && answered(np):
		return stageFree
	case a == nil:
		return stageUnanswered
	case s.Attempt == a.Attempt:
		return stageOver
	case answered(np) && !fits(a, s):
		return stageVoid
	default:
		return stagePending
	}
}

// answered says that the status speaks of the spec as it stands.
func answered(np *v1alpha1.NodeProxy) bool {
	return np.Status.ObservedGeneration >= np.Generation
}

// fits says that the approval is for the plan, the boot and the daemons that the status shows.
func fits(a *v1alpha1.Approval, s *v1alpha1.NodeProxyStatus) bool {
	if s.Plan == nil || s.Plan.Hash != a.PlanHash || s.BootID != a.BootID {
		return false
	}
	for unit, id := range invocations(s) {
		if a.Invocations[unit] != id {
			return false
		}
	}
	return true
}

// invocations of the units that the plan restarts.
func invocations(s *v1alpha1.NodeProxyStatus) map[string]string {
	ids := map[string]string{}
	for _, u := range s.Units {
		if u.InvocationID != "" && slices.Contains(s.Plan.Restarts, u.Name) {
			ids[u.Name] = u.InvocationID
		}
	}
	return ids
}

// targetKey names what a node is to be brought to, in attempts and deferrals.
func targetKey(spec v1alpha1.NodeProxySpec, retry string) string {
	parts := []string{string(spec.Desired), spec.Profile, retry}
	if spec.Desired == v1alpha1.DesiredPresent {
		parts = append(parts, spec.Revision, spec.CredentialsVersion)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// newAttempt is unique to a node: it has one approval at a time, and no two in one millisecond.
func newAttempt(key string, now time.Time) string {
	return key + "-" + strconv.FormatInt(now.UnixMilli(), 36)
}

// attemptKey is the key of the target that an attempt was for.
func attemptKey(attempt string) string {
	key, _, _ := strings.Cut(attempt, "-")
	return key
}

// hasTarget says that the spec commands the target, whatever is approved.
func hasTarget(spec, target v1alpha1.NodeProxySpec) bool {
	spec.Approval, target.Approval = nil, nil
	return spec == target
}

// atTarget says that the node has what it should.
func atTarget(np *v1alpha1.NodeProxy, target v1alpha1.NodeProxySpec) bool {
	s := &np.Status
	if !hasTarget(np.Spec, target) || !answered(np) {
		return false
	}
	if target.Desired == v1alpha1.DesiredAbsent {
		return s.Phase == v1alpha1.PhaseRemoved
	}
	return (s.Phase == v1alpha1.PhaseDone || s.Phase == v1alpha1.PhaseIdle) && s.Plan == nil &&
		s.Revision == target.Revision && s.CredentialsVersion == target.CredentialsVersion
}

// failedAt says that the node failed on its way to the target with that key.
func failedAt(np *v1alpha1.NodeProxy, key string) bool {
	s := &np.Status
	switch s.Phase {
	case v1alpha1.PhaseRolledBack, v1alpha1.PhaseFailed:
	default:
		return false
	}
	if attemptKey(s.Attempt) == key {
		return true
	}
	// It failed before it could be approved, at what the spec commands now.
	return s.Phase == v1alpha1.PhaseFailed && np.Spec.Approval == nil && answered(np) && s.Plan == nil
}

// broken says that an attempt ended and left the node worse than a node that was rolled back: not
// Ready, with a daemon that failed, or with pulls that fail.
func broken(n *Node) bool {
	if n.Proxy == nil {
		return false
	}
	s := &n.Proxy.Status
	if s.Phase != v1alpha1.PhaseFailed && s.Phase != v1alpha1.PhaseRolledBack {
		return false
	}
	if !n.Ready {
		return true
	}
	for _, u := range s.Units {
		if u.State == "failed" {
			return true
		}
	}
	if s.Phase == v1alpha1.PhaseRolledBack {
		return false
	}
	return slices.ContainsFunc(s.Canaries, func(c v1alpha1.CanaryEvidence) bool {
		return c.Verdict == v1alpha1.VerdictFailed
	})
}

// inHandReason is why a node that has a slot is unavailable.
const inHandReason = "in hand"

// gone says that the agent has not answered for so long that it is only reported.
func gone(n *Node, now time.Time) bool {
	return !n.SilentSince.IsZero() && now.Sub(n.SilentSince) >= SilentLimit
}

// cordonedByOthers says that somebody else took the node out of scheduling.
func cordonedByOthers(n *Node) bool { return n.Unschedulable && n.CordonedFor == "" }

// Unavailable says why a node counts against the occupancy of its profile, or nothing when it does
// not.
func Unavailable(n *Node, claims map[string]Claim, now time.Time) string {
	claim, taken := claims[n.Name]
	switch {
	case taken && claim.Joined, gone(n, now):
		return ""
	case taken:
		return inHandReason
	case n.CordonedFor != "":
		return "cordoned by Proxyward"
	case n.Proxy != nil && outstanding(n.Proxy):
		return inHandReason
	case !n.Ready && now.Sub(n.NotReadySince) < SilentLimit:
		return "not Ready"
	case cordonedByOthers(n):
		return "cordoned by somebody else"
	case !n.SilentSince.IsZero():
		return "its agent is silent"
	case broken(n):
		return "failed and not healthy"
	}
	return ""
}

// outstanding says that the agent may be at work, or begin it, without asking again.
func outstanding(np *v1alpha1.NodeProxy) bool {
	switch stageOf(np) {
	case stagePending, stageVoid, stageRunning:
		return true
	}
	return false
}
