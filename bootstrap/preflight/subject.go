package preflight

import (
	"cmp"
	"context"
	"net"
	"strings"
	"sync"

	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/node"
	"github.com/proxyward/proxyward/internal/prober"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// subject is the host under the checks, with what several of them need, found out once.
type subject struct {
	host    *node.Node
	wanted  bootstrap.Wanted
	request Request

	resolver canary.Resolver
	// look observes the units.
	look func() look
	// walks go the way of each canary.
	walks func() []walk
	// asked asks the proxy itself where no canary does.
	asked func() *canary.Failure
	// table says which way each host goes.
	table func() []Decision
}

// look is what drift makes of the host.
type look struct {
	plan     drift.Plan
	observed []drift.Observed
}

// newSubject prepares what is shared. Whoever needs it first finds it out, the others wait; it ends
// with ctx, the context of the whole run, and not with that of one check.
func newSubject(ctx context.Context, host *node.Node, wanted bootstrap.Wanted, req Request) *subject {
	s := &subject{host: host, wanted: wanted, request: req, resolver: req.Resolver}
	if s.resolver == nil {
		s.resolver = net.DefaultResolver
	}
	s.look = sync.OnceValue(func() look {
		ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
		defer cancel()
		plan, observed := host.Look(ctx, wanted.Units, wanted.CredentialsVersion)
		return look{plan: plan, observed: observed}
	})
	s.walks = sync.OnceValue(func() []walk { return s.walkAll(ctx) })
	s.asked = sync.OnceValue(func() *canary.Failure { return s.askProxy(ctx) })
	s.table = sync.OnceValue(func() []Decision { return s.decide(ctx) })
	return s
}

// unit is one daemon as it is desired, as it was observed, and what drift thinks of it.
type unit struct {
	drift.Desired
	observed drift.Observed
	verdict  drift.UnitVerdict
	plan     drift.Plan
}

func (s *subject) units() []unit {
	l := s.look()
	var out []unit
	for i, d := range s.wanted.Units {
		out = append(out, unit{Desired: d, observed: l.observed[i], verdict: l.plan.Units[i], plan: l.plan})
	}
	return out
}

// perUnit makes a check of one that judges one unit.
func perUnit(judge func(context.Context, *subject, unit) Result) func(context.Context, *subject) []Result {
	return func(ctx context.Context, s *subject) []Result {
		var out []Result
		for _, u := range s.units() {
			r := judge(ctx, s, u)
			r.Subject = u.Unit
			out = append(out, r)
		}
		if len(out) == 0 {
			out = append(out, noRuntime())
		}
		return out
	}
}

func noRuntime() Result {
	return untested("", "install the runtime first, or name its target in spec.targets", "no container runtime was found on this host")
}

// installed says that Proxyward's files are there already, so that the host should be as desired.
func (u unit) installed() bool {
	f := u.observed.Files.Ours[runtimes.DropInPath(u.Unit)]
	return f.Exists && f.Owned
}

// runsAsDesired says that the running process has exactly the desired environment.
func (u unit) runsAsDesired() bool {
	if u.observed.Process.Running != runtimes.True || u.observed.Process.Err != nil {
		return false
	}
	has := map[string]string{}
	for _, v := range u.observed.Process.Environ {
		has[v.Name] = v.Value.Reveal()
	}
	for _, v := range u.Environment.Vars {
		if value, set := has[v.Name]; !set || value != v.Value.Reveal() {
			return false
		}
	}
	for _, name := range u.Environment.Unset {
		if _, set := has[name]; set {
			return false
		}
	}
	return true
}

// breaks says when a wrong setting of the unit is felt: a process that is right is not affected
// before it is started again.
func (u unit) breaks() Breaks {
	if u.runsAsDesired() {
		return AtRestart
	}
	return Now
}

// findings of drift that have one of the reasons.
func (u unit) findings(reasons ...string) []string {
	var out []string
	for _, f := range u.verdict.Findings {
		for _, r := range reasons {
			if f.Reason == r {
				out = append(out, said(f.Path, f.Message))
			}
		}
	}
	return out
}

func said(path, message string) string {
	if path == "" {
		return message
	}
	return path + ": " + message
}

// variable is an assignment as somebody wrote it, with whatever may be a credential masked.
func variable(name, value string) proxyenv.Var {
	if strings.EqualFold(name, "NO_PROXY") || !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
		return proxyenv.Var{Name: name, Value: proxyenv.NewSecret(value, cmp.Or(proxyenv.MaskText(value), `""`))}
	}
	return proxyenv.Var{Name: name, Value: proxyenv.NewSecret(value, cmp.Or(proxyenv.MaskURL(value), `""`))}
}

// canaryOf returns the canary with a role, or nil.
func (s *subject) canaryOf(role string) *prober.Canary {
	for i, c := range s.wanted.Canaries {
		if strings.EqualFold(string(c.Role), role) {
			return &s.wanted.Canaries[i]
		}
	}
	return nil
}
