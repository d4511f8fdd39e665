//go:build linux

package integration

import (
	"testing"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/api/v1alpha1"
)

func TestBootstrapProvesANode(t *testing.T) {
	s := startSite(t)
	out := s.bootstrap(t, s.profile, 0)
	if out.Outcome != apply.Done || len(out.Restarted) != 1 {
		t.Errorf("outcome %s, restarted %q", out.Outcome, out.Restarted)
	}
	if e := evidence(t, out, v1alpha1.CanaryInternal); e.Verdict != v1alpha1.VerdictVerified || e.Route != v1alpha1.RouteDirect {
		t.Errorf("internal: %+v", e)
	}
	if e := evidence(t, out, v1alpha1.CanaryExternal); e.Verdict != v1alpha1.VerdictVerified || e.Route != v1alpha1.RouteProxy {
		t.Errorf("external: %+v", e)
	}
	if got := s.environ(t)["HTTPS_PROXY"]; got != s.profile.Proxy {
		t.Errorf("HTTPS_PROXY=%q", got)
	}
}
