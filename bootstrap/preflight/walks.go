package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/drift"
	"github.com/proxyward/proxyward/internal/prober"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

const (
	// walkTimeout bounds one walk to a canary.
	walkTimeout = 20 * time.Second
	// patience with one step of a walk: a proxy that is silent for longer serves no pull either.
	patience = 4 * time.Second
)

// walk is the way to one canary, by the host list of one runtime.
type walk struct {
	canary prober.Canary
	// units whose host list it is.
	units  []string
	report canary.WalkReport
}

// walkAll walks to every canary, side by side; runtimes with the same host list share a walk.
func (s *subject) walkAll(ctx context.Context) []walk {
	var walks []walk
	var requests []canary.WalkRequest
	for _, c := range s.wanted.Canaries {
		seen := map[string]int{}
		for _, u := range pulling(s.wanted.Units) {
			hosts := prober.PulledFrom(c.Image, u.Runtime)
			key := strings.Join(hosts, " ")
			if i, again := seen[key]; again {
				walks[i].units = append(walks[i].units, u.Unit)
				continue
			}
			seen[key] = len(walks)
			walks = append(walks, walk{canary: c, units: []string{u.Unit}})
			requests = append(requests, s.walkRequest(c, u.Environment, hosts))
		}
	}
	var all sync.WaitGroup
	for i := range walks {
		all.Go(func() { walks[i].report = canary.Walk(ctx, requests[i]) })
	}
	all.Wait()
	return walks
}

func (s *subject) walkRequest(c prober.Canary, env proxyenv.Environment, hosts []string) canary.WalkRequest {
	return canary.WalkRequest{
		Image: c.Image, Environment: env, Auth: c.Auth, CA: s.wanted.CA, Hosts: hosts,
		Resolver: s.request.Resolver, Roots: s.request.Roots, Timeout: walkTimeout, Patience: patience,
	}
}

func pulling(units []drift.Desired) []drift.Desired {
	return slices.DeleteFunc(slices.Clone(units), func(d drift.Desired) bool { return d.Runtime.API == runtimes.PullNone })
}

func (s *subject) walksOf(role v1alpha1.CanaryRole) []walk {
	return slices.DeleteFunc(slices.Clone(s.walks()), func(w walk) bool { return w.canary.Role != role })
}

func checkInternalWalk(_ context.Context, s *subject) []Result {
	return s.judgeWalks(v1alpha1.CanaryInternal,
		warn("", "name an image of your registry in spec.canary.internal", "the profile names no internal canary, so no internal registry was walked"))
}

func checkExternalWalk(_ context.Context, s *subject) []Result {
	return s.judgeWalks(v1alpha1.CanaryExternal,
		warn("", "nothing on a closed network; else name an image from outside in spec.canary.external",
			"the profile names no external canary: a node is verified by the internal one alone"))
}

func (s *subject) judgeWalks(role v1alpha1.CanaryRole, none Result) []Result {
	if s.canaryOf(string(role)) == nil {
		return []Result{none}
	}
	var out []Result
	for _, w := range s.walksOf(role) {
		r := judgeWalk(w)
		r.Subject = w.canary.Image
		out = append(out, r)
	}
	if len(out) == 0 {
		out = append(out, untested("", "install a container runtime, or name its target", "no unit of this host pulls images"))
	}
	return out
}

// judgeWalk judges each hop of a walk, and its end.
func judgeWalk(w walk) Result {
	seen := hops(w.report)
	if f := w.report.Failure; f != nil {
		seen = append([]string{fmt.Sprintf("%s at %s: %s", f.Kind, f.Hop, f.Detail)}, seen...)
		if f.Inconclusive() {
			return untested("", f.Fix, seen...)
		}
		return fail("", Now, f.Fix, seen...)
	}
	wrong, fix := v1alpha1.RouteProxy, "name the registry in spec.registries.internal"
	if w.canary.Role == v1alpha1.CanaryExternal {
		wrong, fix = v1alpha1.RouteDirect, "remove the entry of NO_PROXY that matches it, or give a proxy for its scheme"
	}
	for _, hop := range w.report.Hops {
		if hop.Purpose == canary.PurposeRegistry && hop.Route == wrong {
			return fail("", Now, fix, append([]string{fmt.Sprintf("%s goes by the wrong way, %s: %s", hop.Host, strings.ToLower(string(hop.Route)), hop.Why)}, seen...)...)
		}
	}
	return pass("", append([]string{fmt.Sprintf("a layer arrived, image %s", w.report.Digest)}, seen...)...)
}

// hops tells of each hop in one line.
func hops(r canary.WalkReport) []string {
	var out []string
	for _, h := range r.Hops {
		line := fmt.Sprintf("%s %s: %s", h.Purpose, h.Host, strings.ToLower(string(h.Route)))
		if h.Proxy != "" {
			line += " " + h.Proxy
		}
		if h.Status != 0 {
			line += fmt.Sprintf(", answered %d", h.Status)
		}
		line += fmt.Sprintf(" in %s (%s)", h.Took.Round(time.Millisecond), h.Why)
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}
