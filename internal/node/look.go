package node

import (
	"context"

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
