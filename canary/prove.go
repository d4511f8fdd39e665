package canary

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/pull"
	"github.com/proxyward/proxyward/canary/witness"
	"github.com/proxyward/proxyward/runtimes"
)

// houseTime bounds what surrounds a pull: removing the image before and after it.
const houseTime = 30 * time.Second

// maxPulls bounds how often a proof pulls until it has seen the bytes come.
const maxPulls = 3

// puller is what a proof needs of a runtime.
type puller interface {
	// Clear removes the image and checks that it is gone, or returns a *pull.HeldError.
	Clear(ctx context.Context) error
	// Pull fetches it and says what arrived.
	Pull(ctx context.Context) (pull.Arrival, error)
	Close() error
}

// Prove pulls the image fresh through the daemon, watches the sockets that its bytes come in by,
// removes it again, and returns what was seen. Whatever goes wrong is in the evidence.
func Prove(ctx context.Context, request Request) v1alpha1.CanaryEvidence {
	request.Timeout = cmp.Or(request.Timeout, DefaultPullTimeout)
	if request.Resolver == nil {
		request.Resolver = net.DefaultResolver
	}
	evidence := v1alpha1.CanaryEvidence{Role: request.Role, Target: request.Runtime.Target, Image: request.Image}
	p, err := open(request)
	if err == nil {
		evidence = prove(ctx, p, request, evidence)
		err = p.Close()
	}
	if err != nil && evidence.Verdict == "" {
		evidence.Verdict, evidence.Message = v1alpha1.VerdictFailed, err.Error()
	}
	evidence.Message = redactor(request.Environment, request.Auth)(evidence.Message)
	evidence.Time = metav1.Now()
	return evidence
}

// open prepares the runtime's own way to pull.
func open(request Request) (puller, error) {
	image := pull.Image{Name: request.Image}
	if request.Auth != nil {
		image.Username, image.Password = request.Auth.Username, request.Auth.Password
	}
	switch request.Runtime.API {
	case runtimes.PullByCRI:
		return pull.OpenCRI(request.Runtime.Socket, image)
	case runtimes.PullByDocker:
		return pull.OpenDocker(request.Runtime.Socket, image)
	default:
		return nil, fmt.Errorf("pulling through %s: it pulls no images", request.Runtime.Target)
	}
}

func prove(ctx context.Context, p puller, request Request, evidence v1alpha1.CanaryEvidence) v1alpha1.CanaryEvidence {
	expected, err := expect(request.Role, request.Image, request.Runtime, request.Environment)
	if err != nil {
		return concluded(evidence, observation{pullErr: err})
	}
	evidence.ExpectedRoute = expected.route
	if err := clearImage(ctx, p); err != nil {
		return concluded(evidence, observation{expected: expected, pullErr: err})
	}
	seen := observation{expected: expected}
	remotes := resolve(ctx, request.Resolver, expected.endpoints)
	sockets, watchErr, tidyErr := seen.pullUntilSeen(ctx, p, request)
	// Names may have moved to other addresses meanwhile.
	remotes = merge(remotes, resolve(ctx, request.Resolver, expected.endpoints))
	judge := func() {
		if seen.finding = witness.Judge(sockets, witness.Expected{Size: seen.arrival.Size, Remotes: remotes}); watchErr != nil {
			seen.finding = witness.Finding{Route: v1alpha1.RouteUnknown, Why: watchErr.Error()}
		}
	}
	judge()
	if seen.needsExplaining() {
		report := Walk(context.WithoutCancel(ctx), WalkRequest{
			Image: request.Image, Environment: request.Environment, Auth: request.Auth, CA: request.CA,
			Roots: request.Roots, Hosts: expected.hosts, Resolver: request.Resolver,
		})
		seen.walk = &report
		remotes = merge(remotes, resolve(ctx, request.Resolver, sentTo(report)))
		judge()
	}
	evidence = concluded(evidence, seen)
	if tidyErr != nil {
		evidence.Message = join(evidence.Message, "afterwards: "+tidyErr.Error())
	}
	return evidence
}

func clearImage(ctx context.Context, p puller) error {
	ctx, cancel := context.WithTimeout(ctx, houseTime)
	defer cancel()
	return p.Clear(ctx)
}

// pullUntilSeen pulls, and clears the image again. A pull whose bytes were not seen coming, as on a
// busy machine, is repeated, as fresh as the first, up to maxPulls in all.
func (o *observation) pullUntilSeen(ctx context.Context, p puller, request Request) (sockets []witness.Socket, watchErr, tidyErr error) {
	for range maxPulls {
		sockets, watchErr = o.pull(ctx, p, request)
		tidyErr = clearImage(context.WithoutCancel(ctx), p)
		failed := o.pullErr != nil || watchErr != nil || tidyErr != nil
		if failed || len(o.arrival.Held) > 0 || !witness.Missed(sockets, o.arrival.Size) {
			break
		}
	}
	return sockets, watchErr, tidyErr
}

// pull pulls under watch and returns the connections that were opened meanwhile. An error is about
// the watch alone; a failed pull is in the observation.
func (o *observation) pull(ctx context.Context, p puller, request Request) ([]witness.Socket, error) {
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	watch, watchErr := witness.Start(context.WithoutCancel(ctx), request.MainPID)
	o.arrival, o.pullErr = p.Pull(ctx)
	// gRPC tells the daemon the deadline, so its answer may come a moment before ours passes.
	if deadline, ok := ctx.Deadline(); o.pullErr != nil && ok && time.Until(deadline) < request.Timeout/10 {
		o.pullErr = fmt.Errorf("pulling image %q: no end after %s: %w", request.Image, request.Timeout, o.pullErr)
	}
	if watchErr != nil {
		return nil, watchErr
	}
	return watch.Stop()
}

// sentTo returns the hosts that the registry itself sent the walk to directly: layers often lie
// elsewhere.
func sentTo(report WalkReport) []endpoint {
	var endpoints []endpoint
	for _, hop := range report.Hops {
		if hop.Purpose == PurposeRedirect && hop.Proxy == "" && hop.hostPort != "" {
			endpoints = append(endpoints, endpoint{hop.hostPort, v1alpha1.RouteDirect})
		}
	}
	return endpoints
}
