package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/node"
	"github.com/proxyward/proxyward/internal/prober"
	"github.com/proxyward/proxyward/runtimes"
)

// change is one change of a host by one verb.
type change struct {
	verb    string
	applier *apply.Applier
	request apply.Request
	// filesOnly leaves out every restart.
	filesOnly bool
	// units whose daemons can be asked to prove.
	units []string
	notes []string
}

// begin makes a change possible: what another process left unfinished is undone first.
func begin(ctx context.Context, host *node.Node, verb string, observe apply.Observer) (*change, error) {
	applier, err := host.Applier(verb, observe)
	if err != nil {
		return nil, err
	}
	c := &change{verb: verb, applier: applier}
	c.request = apply.Request{Local: true, Attempt: verb + "-" + rand.Text()}
	left := applier.Recover(ctx, apply.Recovery{})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("looking for a change that another process left: %w", err)
	}
	switch left.Outcome {
	case apply.Unchanged:
	case apply.Refused, apply.UndoFailed:
		return nil, notEnded(left)
	default:
		c.notes = append(c.notes, fmt.Sprintf("the change %q, which another process had left unfinished, was ended first (%s)", left.Attempt, left.Outcome))
	}
	return c, nil
}

// notEnded says why what another process left could not be ended: its first failure, and what failed
// in the undo.
func notEnded(left apply.Result) error {
	return fmt.Errorf("finishing the change %q that another process left: %w", left.Attempt, errors.Join(left.Err, left.UndoErr))
}

// stage says how far to go towards what is wanted, and how to judge it.
func (c *change) stage(stage Stage, host *node.Node, wanted Wanted) {
	c.request.Revision, c.request.CredentialsVersion = wanted.Revision, wanted.CredentialsVersion
	c.judgeBy(host, wanted.Units)
	if stage == StageFiles {
		c.filesOnly = true
		return
	}
	c.request.Daemons = node.Daemons{Node: host}
	if len(wanted.Canaries) > 0 {
		c.request.Prober = &prober.Prober{Node: host, Units: wanted.Units, Canaries: wanted.Canaries, CA: wanted.CA, Timeout: wanted.Timeout}
	}
}

func (c *change) judgeBy(host *node.Node, units []drift.Desired) {
	c.request.Judge = apply.DriftJudge{Host: host.Observed(), Desired: units}
	for _, d := range units {
		c.request.Runtimes = append(c.request.Runtimes, d.Runtime)
		if d.Runtime.API != runtimes.PullNone {
			c.units = append(c.units, d.Unit)
		}
	}
}

// apply carries the plan out.
func (c *change) apply(ctx context.Context, plan drift.Plan) apply.Result {
	if c.filesOnly {
		plan.Actions = slices.DeleteFunc(slices.Clone(plan.Actions), func(a drift.Action) bool { return a.Kind == drift.ActionRestart })
	}
	c.request.Plan = plan
	return c.applier.Apply(ctx, c.request)
}

// proveUnlessDone proves a change that restarted nothing, which the transaction takes for proven by
// whatever proved the running daemon.
func (c *change) proveUnlessDone(ctx context.Context, result *apply.Result) {
	if c.request.Prober == nil || result.Proof != nil || result.Outcome != apply.Done && result.Outcome != apply.Unchanged {
		return
	}
	proof := c.request.Prober.Prove(ctx, c.units)
	result.Proof = &proof
}
