package apply

import (
	"slices"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/runtimes"
)

// Request is one change to make.
type Request struct {
	Plan drift.Plan
	// Revision and CredentialsVersion that the plan leads to; "" when it removes.
	Revision, CredentialsVersion string
	// Approval of the plan. Nil is enough for a plan that restarts nothing, and when Local.
	Approval *v1alpha1.Approval
	// Local says that the caller answers for the restarts itself: nobody else approves.
	Local bool
	// Attempt names a change that has no approval, uniquely.
	Attempt string
	Checks
}

// Checks is how a change is asked for and judged. What is nil is not done.
type Checks struct {
	Prober  Prober
	Judge   Judge
	Daemons Daemons
	// Runtimes behind the units that are restarted.
	Runtimes []runtimes.Runtime
}

func (c Checks) runtime(unit string) (runtimes.Runtime, bool) {
	i := slices.IndexFunc(c.Runtimes, func(r runtimes.Runtime) bool { return r.Unit == unit })
	if i < 0 {
		return runtimes.Runtime{}, false
	}
	return c.Runtimes[i], true
}

func (r Request) attempt() string {
	if r.Approval != nil {
		return r.Approval.Attempt
	}
	return r.Attempt
}

// admit says why the request may not be carried out, from the plan and the approval alone.
func (r Request) admit(bootID string, used func(attempt string) bool) *RefusedError {
	if r.Plan.Refused != "" {
		return refusal(ReasonPlan, nil, "%s", r.Plan.Refused)
	}
	restarts := r.Plan.Restarts()
	for _, v := range r.Plan.Units {
		if slices.Contains(restarts, v.Unit) && v.Restart.Refuse != "" {
			return refusal(ReasonRestart, nil, "%q must not be restarted: %s", v.Unit, v.Restart.Refuse)
		}
	}
	for _, rt := range r.Runtimes {
		if slices.Contains(restarts, rt.Unit) && rt.Restart.Refuse != "" {
			return refusal(ReasonRestart, nil, "%q must not be restarted: %s", rt.Unit, rt.Restart.Refuse)
		}
	}
	if r.attempt() == "" {
		return refusal(ReasonNotApproved, nil, "the change has no attempt to be journalled under")
	}
	if used(r.attempt()) {
		return refusal(ReasonApprovalUsed, nil, "attempt %q was used before; a new approval is needed", r.attempt())
	}
	if r.Approval == nil {
		if len(restarts) > 0 && !r.Local {
			return refusal(ReasonNotApproved, nil, "the plan restarts %q and nobody has approved that", restarts)
		}
		return nil
	}
	return r.approved(bootID)
}

// approved compares the approval with the plan and the host that it was given for. The
// InvocationIDs are compared later, with systemd's own word.
func (r Request) approved(bootID string) *RefusedError {
	if r.Approval.PlanHash != r.Plan.Hash {
		return refusal(ReasonApprovalStale, nil, "the approval is for plan %q, this is plan %q", r.Approval.PlanHash, r.Plan.Hash)
	}
	if r.Approval.BootID != bootID {
		return refusal(ReasonApprovalStale, nil, "the approval is for boot %q, this is boot %q", r.Approval.BootID, bootID)
	}
	return nil
}

// approvedInvocation compares one unit that is about to be restarted with the approval.
func (r Request) approvedInvocation(unit, invocation string) *RefusedError {
	if r.Approval == nil {
		return nil
	}
	if want, ok := r.Approval.Invocations[unit]; !ok || want != invocation {
		return refusal(ReasonApprovalStale, nil, "the approval is for invocation %q of %q, which is now %q", want, unit, invocation)
	}
	return nil
}
