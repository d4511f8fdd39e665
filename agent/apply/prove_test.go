package apply_test

import (
	"context"
	"errors"
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
)

func TestC61_ProofComparedWithTheBaseline(t *testing.T) {
	pull := apply.Failure{Subject: "Internal", Kind: "Pull", Hop: "registry:5000", Message: "refused"}
	otherHop := pull
	otherHop.Hop = "proxy:3128"
	otherWords := pull
	otherWords.Message = "refused again"
	busy := apply.Failure{Subject: "Internal", Kind: apply.KindTransient, Hop: "registry:5000", Message: "429"}
	for _, tc := range []struct {
		name          string
		asked         []apply.Failure
		before, after []apply.Failure
		want          apply.Outcome
	}{
		{name: "good", want: apply.Done},
		{name: "mended", before: []apply.Failure{pull}, want: apply.Done},
		{name: "broken", after: []apply.Failure{pull}, want: apply.RolledBack},
		{name: "the same before and after", before: []apply.Failure{pull}, after: []apply.Failure{otherWords}, want: apply.Inconclusive},
		{name: "the same canary by another hop", before: []apply.Failure{pull}, after: []apply.Failure{otherHop}, want: apply.RolledBack},
		{name: "registry busy after", after: []apply.Failure{busy}, want: apply.Inconclusive},
		{name: "registry busy when asked", asked: []apply.Failure{busy}, want: apply.Done},
		{name: "one busy and one broken", after: []apply.Failure{busy, pull}, want: apply.RolledBack},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHost(t, scratch(t))
			before := h.snapshot(t)
			req := change("http://new:3128")
			req.Prober = &fakeProber{model: h.model, asked: tc.asked, before: tc.before, after: tc.after}
			got := h.applier(t, h.parts()).Apply(t.Context(), req)
			wantOutcome(t, got, tc.want)
			snap := h.snapshot(t)
			switch tc.want {
			case apply.RolledBack:
				same(t, "the host", before, snap)
			case apply.Inconclusive:
				if got.Err == nil || snap["known good"] != "" || h.process(t, containerd).Environ != "HTTPS_PROXY=http://new:3128\n" {
					t.Errorf("error %v, host %v", got.Err, snap)
				}
			}
		})
	}
}

func TestC65_DeadPasswordIsNotUndoneTo(t *testing.T) {
	dead := apply.Failure{Subject: "External", Kind: apply.KindProxyAuth, Hop: "new:3128", Message: "407"}
	broken := apply.Failure{Subject: "External", Kind: "Pull", Hop: "new:3128", Message: "403"}

	h := newHost(t, scratch(t))
	req := change("http://new:3128")
	req.Prober = &fakeProber{model: h.model, before: []apply.Failure{dead}}
	wantOutcome(t, h.applier(t, h.parts()).Apply(t.Context(), req), apply.Done)

	// The next rotation: the old one is dead, and the new one does not work either.
	req = change("http://new:3128/2")
	req.Attempt, req.CredentialsVersion = "attempt-2", "secret/3"
	prober := &fakeProber{model: h.model, before: []apply.Failure{dead}}
	prober.onAsk = func() { prober.after = []apply.Failure{dead} }
	req.Prober = proverThenFails{fakeProber: prober, then: []apply.Failure{broken}}
	got := h.applier(t, h.parts()).Apply(t.Context(), req)
	wantOutcome(t, got, apply.NotUndone)
	if !errors.Is(got.Err, broken) || len(got.Restarted) != 2 {
		t.Errorf("error %v, restarted %q", got.Err, got.Restarted)
	}
	snap := h.snapshot(t)
	if h.process(t, containerd).Environ != "HTTPS_PROXY=http://new:3128/2\n" || snap["journal"] != "closed" || snap["dead-man enabled"] != "false" {
		t.Errorf("host %v", snap)
	}

	// The same 407 without new credentials says nothing of an old password.
	h = newHost(t, scratch(t))
	req = change("http://new:3128")
	wantOutcome(t, h.applier(t, h.parts()).Apply(t.Context(), withProber(req, &fakeProber{model: h.model})), apply.Done)
	req = change("http://new:3128/2")
	req.Attempt = "attempt-2"
	fake := &fakeProber{model: h.model, after: []apply.Failure{dead}}
	got = h.applier(t, h.parts()).Apply(t.Context(), withProber(req, proverThenFails{fakeProber: fake, then: []apply.Failure{broken}}))
	wantOutcome(t, got, apply.RolledBack)
}

func withProber(req apply.Request, p apply.Prober) apply.Request {
	req.Prober = p
	return req
}

// proverThenFails proves as the fake does once, and fails from then on.
type proverThenFails struct {
	*fakeProber
	then []apply.Failure
}

func (p proverThenFails) Prove(ctx context.Context, units []string) apply.Proof {
	proof := p.fakeProber.Prove(ctx, units)
	if p.proofs > 1 {
		proof.Failures = p.then
	}
	return proof
}

func TestApply_EvidenceIsRecorded(t *testing.T) {
	h := newHost(t, scratch(t))
	req := change("http://new:3128")
	req.Prober = witness{&fakeProber{model: h.model}}
	wantOutcome(t, h.applier(t, h.parts()).Apply(t.Context(), req), apply.Done)
	good, err := apply.ReadKnownGood(h.root)
	if err != nil || good == nil || good.Digests["registry/canary:1"] != "sha256:1" || good.PlanHash != "plan" {
		t.Errorf("%+v, %v", good, err)
	}

	// What was removed is known good no more.
	wantOutcome(t, h.applier(t, h.parts()).Apply(t.Context(), removal()), apply.Done)
	if good, err := apply.ReadKnownGood(h.root); err != nil || good != nil {
		t.Errorf("%+v, %v", good, err)
	}
}

type witness struct{ *fakeProber }

func (w witness) Prove(context.Context, []string) apply.Proof {
	return apply.Proof{Evidence: []v1alpha1.CanaryEvidence{{Image: "registry/canary:1", Digest: "sha256:1"}}}
}
