package bootstrap

import (
	"context"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/node"
)

// Preview is what a run would do. It holds no secret.
type Preview struct {
	Profile  string                `json:"profile"`
	Revision string                `json:"revision"`
	Actions  []Action              `json:"actions"`
	Units    []v1alpha1.UnitStatus `json:"units"`
	// Refused says why the plan must not be carried out.
	Refused string `json:"refused,omitempty"`
	// Diff of the files with secrets masked.
	Diff  string   `json:"diff,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Differs says that there is something to do.
func (p Preview) Differs() bool { return len(p.Actions) > 0 || p.Refused != "" || !p.inSync() }

func (p Preview) inSync() bool {
	for _, u := range p.Units {
		if u.InSync == "False" {
			return false
		}
	}
	return true
}

// Look says what a run would do on a host, and changes nothing.
func Look(ctx context.Context, host *node.Node, in Input) (Preview, error) {
	wanted, err := Find(host.Root, in)
	if err != nil {
		return Preview{}, err
	}
	plan, observed := host.Look(ctx, wanted.Units, in.CredentialsVersion)
	return Preview{
		Profile: wanted.Profile, Revision: wanted.Revision, Actions: Actions(plan), Units: Units(plan),
		Refused: plan.Refused, Diff: drift.MaskedDiff(plan, observed), Notes: wanted.notes(),
	}, nil
}
