// Package prober asks and proves for a transaction: it walks to the canaries with the desired
// environment before a change, and has the daemons pull them after it. What it finds it puts into
// failures whose identity the transaction can compare.
package prober

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/node"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// Canary is one image to prove with.
type Canary struct {
	Role  v1alpha1.CanaryRole
	Image string
	// Auth for its registry, or nil.
	Auth *canary.RegistryAuth
}

// Prober asks and proves on one host.
type Prober struct {
	Node *node.Node
	// Units as they are desired.
	Units    []drift.Desired
	Canaries []Canary
	// CA in PEM that the daemons trust besides their host's; nil when there is none.
	CA []byte
	// Timeout of one pull; the canary's default when 0.
	Timeout time.Duration
}

// Ask walks to every canary from this process, with the desired environment. A way that the
// environment itself sends wrong is a failure too: a pull could only confirm it.
func (p *Prober) Ask(ctx context.Context) apply.Proof {
	var proof apply.Proof
	var walked []string
	for _, unit := range p.pulling(nil) {
		for _, c := range p.Canaries {
			hosts := PulledFrom(c.Image, unit.Runtime)
			if key := c.Image + " " + strings.Join(hosts, " "); slices.Contains(walked, key) {
				continue
			} else {
				walked = append(walked, key)
			}
			report := canary.Walk(ctx, canary.WalkRequest{Image: c.Image, Environment: unit.Environment, Auth: c.Auth, CA: p.CA, Hosts: hosts})
			if f := asked(c, report); f != nil {
				proof.Failures = append(proof.Failures, *f)
			}
		}
	}
	return proof
}

// asked is what a walk says against the change, or nil.
func asked(c Canary, report canary.WalkReport) *apply.Failure {
	subject := fmt.Sprintf("the %s canary %q, asked from here", strings.ToLower(string(c.Role)), c.Image)
	if report.Failure != nil {
		return &apply.Failure{
			Subject: subject, Kind: kindOf(string(report.Failure.Kind), report.Failure.Inconclusive()),
			Hop: report.Failure.Hop, Message: report.Failure.Error(),
		}
	}
	wrong, fix := v1alpha1.RouteProxy, "name the registry in spec.registries.internal"
	if c.Role == v1alpha1.CanaryExternal {
		wrong, fix = v1alpha1.RouteDirect, "an entry of NO_PROXY matches it, or no proxy is given for its scheme"
	}
	for _, hop := range report.Hops {
		if hop.Purpose == canary.PurposeRegistry && hop.Route == wrong {
			return &apply.Failure{
				Subject: subject, Kind: apply.FailureKind(v1alpha1.VerdictWrongRoute), Hop: hop.Host,
				Message: fmt.Sprintf("%s would be reached by route %s (%s); %s", hop.Host, hop.Route, hop.Why, fix),
			}
		}
	}
	return nil
}

// Prove has the daemons of the units pull every canary, with whatever environment they run with.
func (p *Prober) Prove(ctx context.Context, units []string) apply.Proof {
	var proof apply.Proof
	for _, unit := range p.pulling(units) {
		request, err := p.request(ctx, unit)
		for _, c := range p.Canaries {
			evidence := v1alpha1.CanaryEvidence{Role: c.Role, Target: unit.Target, Image: c.Image, Verdict: v1alpha1.VerdictInconclusive}
			if err != nil {
				evidence.Message = err.Error()
			} else {
				request.Role, request.Image, request.Auth = c.Role, c.Image, c.Auth
				evidence = canary.Prove(ctx, request)
			}
			proof.Evidence = append(proof.Evidence, evidence)
			if f := proven(unit.Unit, evidence); f != nil {
				proof.Failures = append(proof.Failures, *f)
			}
		}
	}
	return proof
}

// request is what all proofs through one daemon share: its process, and the environment that this
// process has.
func (p *Prober) request(ctx context.Context, unit drift.Desired) (_ canary.Request, err error) {
	observed := drift.Observe(ctx, p.Node.Observed(), []drift.UnitRef{{Unit: unit.Unit, Runtime: unit.Runtime}})[0]
	switch {
	case observed.Process.Err != nil:
		return canary.Request{}, observed.Process.Err
	case observed.Process.Running != runtimes.True:
		return canary.Request{}, fmt.Errorf("pulling through %q: it does not run", unit.Unit)
	}
	rt := unit.Runtime
	if rt.Socket, err = p.Node.Path(rt.Socket); err != nil {
		return canary.Request{}, err
	}
	return canary.Request{
		Runtime: rt, MainPID: observed.Process.PID, Timeout: p.Timeout, CA: p.CA,
		Environment: proxyenv.Environment{Vars: observed.Process.Environ, Entries: unit.Environment.Entries},
	}, nil
}

// proven is what evidence says against the change, or nil.
func proven(unit string, e v1alpha1.CanaryEvidence) *apply.Failure {
	if e.Verdict == v1alpha1.VerdictVerified {
		return nil
	}
	f := apply.Failure{
		Subject: fmt.Sprintf("the %s canary %q, pulled by %s", strings.ToLower(string(e.Role)), e.Image, unit),
		Hop:     e.Hop, Message: e.Message,
	}
	kind := e.Failure
	if kind == "" {
		kind = string(e.Verdict)
	}
	if e.Verdict == v1alpha1.VerdictWrongRoute {
		f.Hop = e.Remote
	}
	f.Kind = kindOf(kind, e.Verdict == v1alpha1.VerdictInconclusive)
	return &f
}

// kindOf names the kinds that choose an outcome as the transaction knows them.
func kindOf(kind string, inconclusive bool) apply.FailureKind {
	switch {
	case inconclusive:
		return apply.KindTransient
	case kind == string(canary.FailProxyAuthRequired):
		return apply.KindProxyAuth
	}
	return apply.FailureKind(kind)
}

// pulling returns the units that pull images, of those named; of all when none is.
func (p *Prober) pulling(units []string) []drift.Desired {
	var out []drift.Desired
	for _, d := range p.Units {
		if d.Runtime.API == runtimes.PullByCRI || d.Runtime.API == runtimes.PullByDocker {
			if units == nil || slices.Contains(units, d.Unit) {
				out = append(out, d)
			}
		}
	}
	return out
}

// PulledFrom returns the URLs that a runtime takes the layers of an image from, in order; none for
// a text that names no image, of which the walk says so.
func PulledFrom(image string, rt runtimes.Runtime) []string {
	hops, err := runtimes.ExpectedHops(rt, image)
	if err != nil {
		return nil
	}
	var hosts []string
	for _, hop := range hops {
		if hop.Pulls {
			hosts = append(hosts, hop.URL)
		}
	}
	return hosts
}
