package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

func defaultDrainTimeout() metav1.Duration { return metav1.Duration{Duration: 10 * time.Minute} }

// start takes slots for as many nodes as may begin, in order.
func (d *decider) start() {
	var candidates []*member
	for _, m := range d.ordered {
		if _, taken := d.out.Ledger.Claims[m.node.Name]; !taken && m.node.CordonedFor == "" && d.candidate(m) == "" {
			candidates = append(candidates, m)
		}
	}
	slices.SortStableFunc(candidates, before)
	for _, m := range candidates {
		if d.gate(m) != "" {
			continue
		}
		if d.slotFor(m) == "" {
			d.take(m, false)
		} else if d.joins(m) {
			d.take(m, true)
		}
	}
}

// before orders what starts: unavailable nodes, then by zone and name, the control plane last.
func before(a, b *member) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.node.Zone, b.node.Zone),
		cmp.Compare(a.node.Name, b.node.Name),
	)
}

func rank(m *member) int {
	switch {
	case m.node.ControlPlane:
		return 2
	case m.unavailable == "":
		return 1
	}
	return 0
}

// candidate says why a node cannot be approved whatever the budget, or nothing.
func (d *decider) candidate(m *member) string {
	n, np := m.node, m.node.Proxy
	put, putOff := d.out.Ledger.Deferred[n.Name]
	switch {
	case m.key == "":
		return "the profile is not resolved"
	case np == nil || !hasTarget(np.Spec, m.target):
		return "not assigned yet"
	case atTarget(np, m.target):
		return "nothing is to be done"
	case !n.SilentSince.IsZero() || !n.AgentReady:
		return "its agent does not answer"
	case !answered(np) || np.Status.BootID == "":
		return "waiting for its plan"
	case np.Status.Phase == v1alpha1.PhaseFrozen:
		return "frozen: " + np.Status.Message
	case failedAt(np, m.key):
		return "failed: " + np.Status.Message
	case np.Status.Plan == nil:
		return "waiting for its plan"
	case np.Status.Plan.Refused != "":
		return "refused: " + np.Status.Plan.Refused
	case len(np.Status.Plan.Restarts) == 0:
		return "its agent does it without a restart"
	case m.profile.Spec.Rollout.Drain == v1alpha1.DrainNever && np.Status.Plan.KillsContainers:
		return "the restart ends containers and spec.rollout.drain is Never; allow Auto, or enable live-restore"
	case cordonedByOthers(n):
		return "cordoned by somebody else"
	case putOff:
		d.at(put.Until)
		return "put off: " + put.Reason
	}
	return ""
}

func drains(m *member) bool {
	switch m.profile.Spec.Rollout.Drain {
	case v1alpha1.DrainAlways:
		return true
	case v1alpha1.DrainNever:
		return false
	}
	return m.node.Proxy.Status.Plan.KillsContainers
}

// gate says why a candidate may not start now although a slot may be free, or nothing. It holds for
// a node that has a slot and no approval yet, too.
func (d *decider) gate(m *member) string {
	h := d.holds[m.profile.Name]
	switch {
	case h.all != "":
		return h.all
	case !h.room(m, drains(m), d.now):
		return fmt.Sprintf("the window closes at %s, and a node may need %s", h.closes.UTC().Format(time.RFC3339), NodeTime(m.profile.Spec, drains(m)))
	}
	if m.node.ControlPlane {
		return d.controlPlaneGate(m)
	}
	return ""
}

// controlPlaneGate lets the control plane go after all other nodes, one at a time in the cluster.
func (d *decider) controlPlaneGate(m *member) string {
	for _, other := range d.byProfile[m.profile.Name] {
		if other.node.ControlPlane {
			continue
		}
		if _, taken := d.out.Ledger.Claims[other.node.Name]; taken || d.coming(other) {
			return "the control plane goes last"
		}
	}
	for name, n := range d.nodes {
		if !n.ControlPlane || name == m.node.Name {
			continue
		}
		if _, taken := d.out.Ledger.Claims[name]; taken || n.CordonedFor != "" || !n.Ready {
			return fmt.Sprintf("the control plane goes one at a time, and %q is in hand or not Ready", name)
		}
	}
	return ""
}

// coming says that a node will have its turn without anybody's help.
func (d *decider) coming(m *member) bool {
	np := m.node.Proxy
	switch {
	case gone(m.node, d.now) || cordonedByOthers(m.node):
		return false
	case np == nil || m.key == "":
		return true
	case atTarget(np, m.target) || failedAt(np, m.key):
		return false
	}
	_, putOff := d.out.Ledger.Deferred[m.node.Name]
	return !putOff && (np.Status.Plan == nil || np.Status.Plan.Refused == "") && np.Status.Phase != v1alpha1.PhaseFrozen
}

// slotFor says why there is no slot for a node, its own claim apart, or nothing.
func (d *decider) slotFor(m *member) string {
	h, r := d.holds[m.profile.Name], d.reports[m.profile.Name]
	if own, taken := d.out.Ledger.Claims[m.node.Name]; taken && own.Joined {
		return ""
	}
	inHand, unavailable, firsts := 0, 0, 0
	for _, other := range d.byProfile[m.profile.Name] {
		if other == m {
			continue
		}
		claim, taken := d.out.Ledger.Claims[other.node.Name]
		if taken && !claim.Joined && !gone(other.node, d.now) {
			inHand++
			if other.target.Desired == v1alpha1.DesiredPresent {
				firsts++
			}
		}
		if Unavailable(other.node, d.out.Ledger.Claims, d.now) != "" {
			unavailable++
		}
	}
	if m.target.Desired == v1alpha1.DesiredPresent {
		switch {
		case h.firsts > 0 && (firsts >= h.firsts || m.node.ControlPlane):
			return "waiting for the first nodes"
		case !h.soaking.IsZero():
			return "soaking until " + h.soaking.UTC().Format(time.RFC3339)
		}
	}
	busy := unavailable
	if m.unavailable != "" && m.unavailable != inHandReason {
		busy = inHand
	}
	if busy >= r.Cap {
		return fmt.Sprintf("waiting for a slot: %d nodes are unavailable, and maxUnavailable allows %d", busy, r.Cap)
	}
	return ""
}

// joins says that a node just joined and may go beside the budget.
func (d *decider) joins(m *member) bool {
	s := &m.node.Proxy.Status
	age := d.now.Sub(m.node.Created)
	if !d.holds[m.profile.Name].proven || m.target.Desired != v1alpha1.DesiredPresent || m.node.ControlPlane ||
		m.node.Occupied || !m.node.Ready || age >= JoinedLimit || s.Revision != "" || s.LastKnownGood != "" {
		return false
	}
	joined := 0
	for _, other := range d.byProfile[m.profile.Name] {
		if d.out.Ledger.Claims[other.node.Name].Joined {
			joined++
		}
	}
	return joined < d.reports[m.profile.Name].Cap
}

// take gives a node a slot and takes its first step.
func (d *decider) take(m *member, joined bool) {
	c := Claim{
		Profile: m.profile.Name, Attempt: newAttempt(m.key, d.now), Since: d.now.UTC().Truncate(time.Second),
		Fence: m.node.Proxy.ResourceVersion, Joined: joined, Drain: drains(m) && !joined,
	}
	d.step(Step{Kind: TakeSlot, Node: m.node.Name, Profile: m.profile.Name, Attempt: c.Attempt})
	d.setClaim(m.node.Name, c)
	d.proceed(m, c)
}
