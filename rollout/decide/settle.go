package decide

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// settle goes through the claims: what is over is released, what may no longer start is undone, and
// what may goes on.
func (d *decider) settle() {
	for _, name := range slices.Sorted(maps.Keys(d.out.Ledger.Claims)) {
		c, n, m := d.out.Ledger.Claims[name], d.nodes[name], d.members[name]
		switch {
		case n == nil:
			// The budget is free at once when a node is deleted.
			d.dropClaim(name)
			d.step(Step{Kind: Release, Node: name, Profile: c.Profile, Attempt: c.Attempt, Reason: "the node is gone"})
		case n.Proxy == nil:
			d.undo(n, c, "its NodeProxy is gone", false)
		default:
			d.settleClaim(n, c, m)
		}
	}
}

func (d *decider) settleClaim(n *Node, c Claim, m *member) {
	switch stageOf(n.Proxy) {
	case stageRunning:
		d.setClaim(n.Name, c)
	case stagePending:
		if m == nil {
			d.revoke(n)
		}
	case stageVoid:
		// Its plan may become the approved one again: take the approval back, and see what the
		// agent says to that.
		d.revoke(n)
	case stageUnanswered:
		if gone(n, d.now) && n.CordonedFor != "" {
			d.step(Step{Kind: Uncordon, Node: n.Name, Attempt: n.CordonedFor, Reason: "its agent is silent"})
		}
	case stageOver:
		d.settleOver(n, c, m)
	case stageFree:
		d.settleFree(n, c, m)
	}
}

// revoke takes an approval back and leaves everything else as it is commanded.
func (d *decider) revoke(n *Node) {
	for _, s := range d.out.Steps {
		if s.Kind == Assign && s.Node == n.Name {
			return
		}
	}
	spec := n.Proxy.Spec
	spec.Approval = nil
	d.step(Step{Kind: Assign, Node: n.Name, Profile: spec.Profile, Spec: spec})
}

// settleOver releases a node whose attempt has ended, unless it is broken: then it keeps its slot,
// and goes first when something that may mend it arrives.
func (d *decider) settleOver(n *Node, c Claim, m *member) {
	if n.CordonedFor != "" {
		d.step(Step{Kind: Uncordon, Node: n.Name, Attempt: n.CordonedFor, Reason: "the attempt is over"})
	}
	if broken(n) && !gone(n, d.now) {
		if m != nil && d.candidate(m) == "" && d.gate(m) == "" && d.slotFor(m) == "" {
			d.take(m, c.Joined)
		}
		return
	}
	d.dropClaim(n.Name)
	d.step(Step{Kind: Release, Node: n.Name, Profile: c.Profile, Attempt: c.Attempt, Reason: "the attempt is over"})
}

// settleFree brings a claim that is not approved yet nearer to its approval, or undoes it.
func (d *decider) settleFree(n *Node, c Claim, m *member) {
	if m == nil {
		d.undo(n, c, "no one profile selects it", false)
		return
	}
	if attemptKey(c.Attempt) != m.key {
		d.undo(n, c, "what is desired has changed", false)
		return
	}
	if why := d.candidate(m); why != "" {
		d.undo(n, c, why, false)
		return
	}
	if why := d.gate(m); why != "" {
		d.undo(n, c, why, false)
		return
	}
	if n.Occupied && c.Joined {
		d.undo(n, c, "it just joined and has pods already", false)
		return
	}
	if c.Drain || c.Joined {
		limit := value(m.profile.Spec.Rollout.DrainTimeout, defaultDrainTimeout()).Duration
		d.at(c.Since.Add(limit))
		switch {
		case d.now.Sub(c.Since) >= limit:
			d.undo(n, c, fmt.Sprintf("it could not be drained within %s", limit), true)
			return
		case n.CordonedFor != "" && !n.Unschedulable:
			d.undo(n, c, "its cordon was lifted by somebody else", true)
			return
		case cordonedByOthers(n):
			d.undo(n, c, "it was cordoned by somebody else", false)
			return
		}
	}
	d.proceed(m, c)
}

// undo gives a claim back that was not approved, with its cordon. A warning also puts the node off.
func (d *decider) undo(n *Node, c Claim, why string, warn bool) {
	d.step(Step{Kind: Fence, Node: n.Name, Profile: c.Profile, Attempt: c.Attempt})
	if n.CordonedFor != "" {
		d.step(Step{Kind: Uncordon, Node: n.Name, Attempt: n.CordonedFor, Reason: why})
	}
	d.step(Step{Kind: Release, Node: n.Name, Profile: c.Profile, Attempt: c.Attempt, Reason: why, Warn: warn})
	d.dropClaim(n.Name)
	if warn {
		until := d.now.Add(PutOff).UTC().Truncate(time.Second)
		d.out.Ledger.Deferred[n.Name] = Deferral{Key: attemptKey(c.Attempt), Until: until, Reason: why}
	}
}

// proceed takes the next step of a claim: cordon and drain where it must, then the approval, for
// which it renews the fence and asks for the slot once more.
func (d *decider) proceed(m *member, c Claim) {
	n := m.node
	if (c.Drain || c.Joined) && n.CordonedFor != c.Attempt {
		d.step(Step{Kind: Cordon, Node: n.Name, Profile: m.profile.Name, Attempt: c.Attempt})
		return
	}
	approve := Step{
		Kind: Approve, Node: n.Name, Profile: m.profile.Name, Attempt: c.Attempt,
		Spec: approved(n.Proxy, c.Attempt),
	}
	if c.Drain || c.Joined {
		approve.Kind, approve.Empty = Drain, c.Joined
	}
	if d.slotFor(m) != "" {
		if c.Drain {
			approve.Spec.Approval = nil
			d.step(approve)
		}
		return
	}
	c.Fence = n.Proxy.ResourceVersion
	d.setClaim(n.Name, c)
	d.step(approve)
}

// approved is the node's spec with an approval of the plan that it shows.
func approved(np *v1alpha1.NodeProxy, attempt string) v1alpha1.NodeProxySpec {
	spec := np.Spec
	spec.Approval = &v1alpha1.Approval{
		PlanHash: np.Status.Plan.Hash, Attempt: attempt, BootID: np.Status.BootID,
		Invocations: invocations(&np.Status),
	}
	return spec
}
