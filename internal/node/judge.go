package node

import (
	"context"
	"fmt"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
)

// Look observes the units and compares them with what is desired of them.
func (n *Node) Look(ctx context.Context, desired []drift.Desired, credentialsVersion string) (drift.Plan, []drift.Observed) {
	refs := make([]drift.UnitRef, len(desired))
	for i, d := range desired {
		refs[i] = drift.UnitRef{Unit: d.Unit, Runtime: d.Runtime}
		for _, f := range d.Files {
			refs[i].Paths = append(refs[i].Paths, f.Path)
		}
	}
	observed := drift.Observe(ctx, n.Observed(), refs)
	return drift.Diff(desired, observed, credentialsVersion), observed
}

// Judge compares single units with what is desired of them, for a transaction.
type Judge struct {
	Node    *Node
	Desired []drift.Desired
}

// Loaded fails when systemd has loaded something else than the files say.
func (j Judge) Loaded(ctx context.Context, unit string) error {
	return j.find(ctx, unit, v1alpha1.ReasonReloadNeeded)
}

// Running fails when the daemon's process has another environment than the desired one. A variable
// that somebody else's setting decides is not judged: the plan has said so, and no restart mends it.
func (j Judge) Running(ctx context.Context, unit string) error {
	return j.find(ctx, unit, v1alpha1.ReasonRestartNeeded)
}

func (j Judge) find(ctx context.Context, unit, reason string) error {
	for _, d := range j.Desired {
		if d.Unit != unit {
			continue
		}
		plan, _ := j.Node.Look(ctx, []drift.Desired{d}, "")
		for _, f := range plan.Units[0].Findings {
			if f.Reason == reason || f.Reason == v1alpha1.ReasonUnreadable {
				return fmt.Errorf("comparing %q with what is desired: %s", unit, f.Message)
			}
		}
	}
	return nil
}
