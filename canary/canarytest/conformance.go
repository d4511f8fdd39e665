package canarytest

import (
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/canary/imagebuild"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// Site is a place with a daemon, a proxy and two registries, on which the suite runs.
type Site interface {
	// Under has the daemon run with an environment and returns a request that is complete but for
	// role and image. The daemon's images may be lost by that.
	Under(t *testing.T, environment proxyenv.Environment) canary.Request
	// ProxyURL is a proxy that serves both registries, and DeadProxyURL one at which nothing
	// listens.
	ProxyURL() string
	DeadProxyURL() string
	// Internal and External are canary images of at least imagebuild.DefaultSize bytes each.
	Internal() string
	External() string
	// NoProxy is the NO_PROXY entry for an image's registry.
	NoProxy(image string) string
	// Sibling pushes another image with the layers of an internal or external canary and returns
	// its name, and Alias gives the same image a second one.
	Sibling(t *testing.T, image string) string
	Alias(t *testing.T, image string) string
	// Keep pulls an image through the runtime's socket and leaves it there, Has says whether it is
	// there, and Drop removes it.
	Keep(t *testing.T, socket, image string)
	Has(t *testing.T, socket, image string) bool
	Drop(t *testing.T, socket, image string)
	// OpenDirect makes the external registry reachable without the proxy, until the test ends.
	OpenDirect(t *testing.T)
}

// Environment returns an environment with one proxy for everything, or none.
func Environment(proxy, noProxy string) proxyenv.Environment {
	var environment proxyenv.Environment
	if proxy != "" {
		for _, variable := range []string{"HTTPS_PROXY", "HTTP_PROXY"} {
			environment.Vars = append(environment.Vars, proxyenv.Var{Name: variable, Value: proxyenv.NewSecret(proxy, "")})
		}
	}
	if noProxy != "" {
		environment.Vars = append(environment.Vars, proxyenv.Var{Name: "NO_PROXY", Value: proxyenv.PlainSecret(noProxy)})
	}
	return environment
}

// Conform runs the suite: what every runtime's canaries must show.
func Conform(t *testing.T, site Site) {
	good := func() proxyenv.Environment { return Environment(site.ProxyURL(), site.NoProxy(site.Internal())) }
	prove := func(t *testing.T, request canary.Request, role v1alpha1.CanaryRole) v1alpha1.CanaryEvidence {
		t.Helper()
		request.Role, request.Image = role, site.Internal()
		if role == v1alpha1.CanaryExternal {
			request.Image = site.External()
		}
		evidence := canary.Prove(t.Context(), request)
		if site.Has(t, request.Runtime.Socket, request.Image) && evidence.Verdict == v1alpha1.VerdictVerified {
			t.Errorf("image %q is still there after a proof", request.Image)
		}
		return evidence
	}
	verified := func(t *testing.T, evidence v1alpha1.CanaryEvidence, route v1alpha1.Route) {
		t.Helper()
		if evidence.Verdict != v1alpha1.VerdictVerified || evidence.Route != route || evidence.ExpectedRoute != route {
			t.Errorf("evidence is %+v, want Verified by %s", evidence, route)
		}
		if evidence.Bytes < imagebuild.DefaultSize || evidence.BytesJudgedBy == "" || evidence.Remote == "" ||
			evidence.Duration.Duration <= 0 || evidence.Time.IsZero() || !strings.HasPrefix(evidence.Digest, "sha256:") {
			t.Errorf("evidence lacks something: %+v", evidence)
		}
	}

	t.Run("each canary by its own way", func(t *testing.T) {
		request := site.Under(t, good())
		verified(t, prove(t, request, v1alpha1.CanaryInternal), v1alpha1.RouteDirect)
		verified(t, prove(t, request, v1alpha1.CanaryExternal), v1alpha1.RouteProxy)
	})

	t.Run("C45 an image that is there is fetched anew", func(t *testing.T) {
		request := site.Under(t, good())
		site.Keep(t, request.Runtime.Socket, site.External())
		verified(t, prove(t, request, v1alpha1.CanaryExternal), v1alpha1.RouteProxy)
	})

	t.Run("C45 layers that another image holds prove nothing", func(t *testing.T) {
		request := site.Under(t, good())
		sibling := site.Sibling(t, site.External())
		site.Keep(t, request.Runtime.Socket, sibling)
		t.Cleanup(func() { site.Drop(t, request.Runtime.Socket, sibling) })
		evidence := prove(t, request, v1alpha1.CanaryExternal)
		if evidence.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(evidence.Message, "holds the same bytes") {
			t.Errorf("evidence is %+v, want Inconclusive for shared layers", evidence)
		}
		if !site.Has(t, request.Runtime.Socket, sibling) {
			t.Error("the proof took the other image away")
		}
	})

	t.Run("C45 an image with a second name is left alone", func(t *testing.T) {
		request := site.Under(t, good())
		alias := site.Alias(t, site.External())
		for _, image := range []string{alias, site.External()} {
			site.Keep(t, request.Runtime.Socket, image)
		}
		t.Cleanup(func() { site.Drop(t, request.Runtime.Socket, alias) })
		evidence := prove(t, request, v1alpha1.CanaryExternal)
		if evidence.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(evidence.Message, "other names") {
			t.Errorf("evidence is %+v, want Inconclusive for the other name", evidence)
		}
		if !site.Has(t, request.Runtime.Socket, alias) {
			t.Error("the proof took the other name away")
		}
	})

	t.Run("C46 an internal image by the proxy is the wrong route", func(t *testing.T) {
		evidence := prove(t, site.Under(t, Environment(site.ProxyURL(), "")), v1alpha1.CanaryInternal)
		if evidence.Verdict != v1alpha1.VerdictWrongRoute || evidence.Route != v1alpha1.RouteProxy || evidence.ExpectedRoute != v1alpha1.RouteDirect {
			t.Errorf("evidence is %+v, want WrongRoute by the proxy", evidence)
		}
		if !strings.Contains(evidence.Message, "registries.internal") {
			t.Errorf("message %q does not say what to do", evidence.Message)
		}
	})

	t.Run("C47 an external image by the direct way is the wrong route", func(t *testing.T) {
		site.OpenDirect(t)
		noProxy := site.NoProxy(site.Internal()) + "," + site.NoProxy(site.External())
		evidence := prove(t, site.Under(t, Environment(site.ProxyURL(), noProxy)), v1alpha1.CanaryExternal)
		if evidence.Verdict != v1alpha1.VerdictWrongRoute || evidence.Route != v1alpha1.RouteDirect || evidence.ExpectedRoute != v1alpha1.RouteProxy {
			t.Errorf("evidence is %+v, want WrongRoute by the direct way", evidence)
		}
	})

	t.Run("C48 a dead proxy fails the proof and is named", func(t *testing.T) {
		evidence := prove(t, site.Under(t, Environment(site.DeadProxyURL(), site.NoProxy(site.Internal()))), v1alpha1.CanaryExternal)
		if evidence.Verdict != v1alpha1.VerdictFailed || !strings.Contains(evidence.Message, "connecting to the proxy failed") {
			t.Errorf("evidence is %+v, want Failed at the proxy's connection", evidence)
		}
	})
}
