package apply

import (
	"context"
	"fmt"

	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/runtimes"
)

// DriftJudge judges by the same observation and comparison that made the plan: what they would
// still do to a unit is what is wrong with it. Somebody else's setting that wins is no fault of
// the change, for no restart would mend it.
type DriftJudge struct {
	Host    drift.Host
	Desired []drift.Desired
}

// Loaded implements Judge.
func (j DriftJudge) Loaded(ctx context.Context, unit string) error {
	plan, known := j.plan(ctx, unit)
	if !known {
		return nil
	}
	for _, a := range plan.Actions {
		if a.Kind != drift.ActionRestart {
			return &LoadedError{Unit: unit, Detail: fmt.Sprintf("still to %s %s: %s", a.Kind, a.File.Path, a.Why)}
		}
	}
	return nil
}

// Running implements Judge. What cannot be observed proves nothing, so it fails.
func (j DriftJudge) Running(ctx context.Context, unit string) error {
	plan, known := j.plan(ctx, unit)
	if !known {
		return nil
	}
	for _, a := range plan.Actions {
		if a.Kind == drift.ActionRestart {
			return &RestartError{Unit: unit, Err: fmt.Errorf("comparing its process with what is desired: %s", a.Why)}
		}
	}
	for _, v := range plan.Units {
		if v.Unit != unit || v.InSync != runtimes.Unknown {
			continue
		}
		why := "it could not be observed"
		if len(v.Findings) > 0 {
			why = v.Findings[0].Message
		}
		return &RestartError{Unit: unit, Err: fmt.Errorf("comparing its process with what is desired: %s", why)}
	}
	return nil
}

// plan says what would still have to be done to one unit.
func (j DriftJudge) plan(ctx context.Context, unit string) (plan drift.Plan, known bool) {
	for _, d := range j.Desired {
		if d.Unit != unit {
			continue
		}
		ref := drift.UnitRef{Unit: unit, Runtime: d.Runtime}
		for _, f := range d.Files {
			ref.Paths = append(ref.Paths, f.Path)
		}
		observed := drift.Observe(ctx, j.Host, []drift.UnitRef{ref})
		return drift.Diff([]drift.Desired{d}, observed, ""), true
	}
	return drift.Plan{}, false
}
