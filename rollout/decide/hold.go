package decide

import (
	"fmt"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// hold is what keeps the nodes of one profile from starting.
type hold struct {
	// all says why none starts, or nothing.
	all string
	// closes is when the windows close; zero for never.
	closes time.Time
	// key of the profile's target.
	key string
	// firsts is how many of the first nodes are still to be done, and soaking says how long the
	// others wait after them.
	firsts  int
	soaking time.Time
	// proven says that the target was proven within the budget.
	proven bool
}

// holdOf finds what holds a profile of which done nodes have what they should and present nodes
// that are not of the control plane should have something.
func (d *decider) holdOf(p *Profile, r *ProfileReport, done, present int) hold {
	var h hold
	rollout := &p.Spec.Rollout
	limit, err := Cap(rollout.MaxUnavailable, len(d.byProfile[p.Name])+len(r.Conflicts))
	r.Cap = limit
	if err != nil {
		h.all = err.Error()
	}
	if p.Revision != "" {
		h.key = targetKey(v1alpha1.NodeProxySpec{
			Desired: v1alpha1.DesiredPresent, Profile: p.Name,
			Revision: p.Revision, CredentialsVersion: p.CredentialsVersion,
		}, p.Retry)
		d.firstNodes(p, &h, done, present)
	}
	r.Halted = len(r.FailedNodes) >= int(value(rollout.MaxFailures, 1))
	closes, open, err := OpenUntil(rollout.Windows, d.now)
	h.closes = closes
	switch {
	case h.all != "":
	case err != nil:
		h.all = err.Error()
	case rollout.Paused:
		h.all = "paused"
	case r.Halted:
		h.all = fmt.Sprintf("halted: %d nodes failed, and maxFailures is %d", len(r.FailedNodes), value(rollout.MaxFailures, 1))
	case !open:
		h.all = "waiting for a window"
	}
	if len(rollout.Windows) > 0 {
		if next, err := NextOpening(rollout.Windows, d.now); err == nil && !next.IsZero() {
			d.at(next)
			if !open && h.all == "waiting for a window" {
				h.all = "waiting for the window that opens at " + next.UTC().Format(time.RFC3339)
			}
		}
		d.at(closes)
	}
	return h
}

// firstNodes keeps the profile's progress and says what it still asks for.
func (d *decider) firstNodes(p *Profile, h *hold, done, present int) {
	progress := d.out.Ledger.Progress[p.Name]
	if progress.Key != h.key {
		progress = Progress{Key: h.key}
	}
	wanted := min(int(value(p.Spec.Rollout.FirstNodes, 1)), present)
	if progress.FirstDone.IsZero() && done >= max(1, wanted) {
		progress.FirstDone = d.now.UTC().Truncate(time.Second)
	}
	if old, known := d.out.Ledger.Progress[p.Name]; !known || old != progress {
		d.out.Ledger.Progress[p.Name] = progress
		d.out.LedgerChanged = true
	}
	if wanted > 0 && progress.FirstDone.IsZero() {
		h.firsts = wanted - done
		return
	}
	if soak := p.Spec.Rollout.Soak; wanted > 0 && soak != nil {
		if end := progress.FirstDone.Add(soak.Duration); end.After(d.now) {
			h.soaking = end
			d.at(end)
		}
	}
	h.proven = !progress.FirstDone.IsZero() && h.soaking.IsZero()
}

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// room says whether a node that starts now is done before the windows close.
func (h hold) room(m *member, drains bool, now time.Time) bool {
	return h.closes.IsZero() || !now.Add(NodeTime(m.profile.Spec, drains)).After(h.closes)
}
