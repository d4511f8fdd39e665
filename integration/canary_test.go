//go:build linux

package integration

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/canary/canarytest"
	"github.com/proxyward/proxyward/canary/imagebuild"
	"github.com/proxyward/proxyward/canary/pull"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

func TestCanaryOnARealNode(t *testing.T) {
	for _, generation := range lab.GenerationsUnderTest(t) {
		t.Run(string(generation), func(t *testing.T) {
			c := startCanaryLab(t, lab.NodeSpec{Generation: generation})
			canarytest.Conform(t, c)
			t.Run("C48 faulty proxies are told apart", c.faultyProxies)
			t.Run("C17 redirected layers", c.redirectedLayers)
			t.Run("C50 a token realm at another host", c.tokenRealm)
			t.Run("C62 a mirror", c.mirror)
			t.Run("C45 a runtime that discards unpacked layers", c.discardedLayers)
			t.Run("C45 a layer that is unpacked already", c.unpackedElsewhere)
			t.Run("C45 a blob that another namespace holds", c.otherNamespace)
			t.Run("a registry that asks for a login", c.login)
		})
	}
}

func (c *canaryLab) faultyProxies(t *testing.T) {
	noCredentials := c.Proxy(lab.Auth).URL()
	if evidence := c.proveExternal(t, noCredentials); evidence.Verdict != v1alpha1.VerdictFailed || !strings.Contains(evidence.Message, "407: no credentials") {
		t.Errorf("squid without credentials: evidence is %+v, want Failed with its 407", evidence)
	}
	for mode, want := range map[lab.FaultMode]canary.FailureKind{
		lab.Fault403:       canary.FailProxyForbidden,
		lab.Fault407:       canary.FailProxyAuthRequired,
		lab.Fault503:       canary.FailProxyUpstream,
		lab.FaultHang:      canary.FailProxyTimeout,
		lab.FaultDrop:      canary.FailProxyNotHTTP,
		lab.FaultNotHTTP:   canary.FailProxyNotHTTP,
		lab.FaultTLSOnly:   canary.FailProxyIsTLS,
		lab.FaultIntercept: canary.FailTLSIntercepted, // C49
	} {
		t.Run(string(want)+" by "+fmt.Sprint(mode), func(t *testing.T) {
			proxy, err := c.FaultProxy(t.Context(), mode, lab.FaultOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := proxy.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
			report := canary.Walk(t.Context(), canary.WalkRequest{
				Image: c.external, Environment: canarytest.Environment(proxy.URL(), ""), CA: c.CA(),
				Roots: x509.NewCertPool(), Resolver: c, Patience: 3 * time.Second,
			})
			if report.Failure == nil || report.Failure.Kind != want {
				t.Errorf("walk ended with %v, want %s", report.Failure, want)
			}
		})
	}
}

func (c *canaryLab) proveExternal(t *testing.T, proxy string) v1alpha1.CanaryEvidence {
	t.Helper()
	request := c.Under(t, canarytest.Environment(proxy, c.NoProxy(c.internal)))
	request.Role, request.Image = v1alpha1.CanaryExternal, c.external
	return canary.Prove(t.Context(), request)
}

func (c *canaryLab) redirectedLayers(t *testing.T) {
	image := c.push(t, lab.Redirect, "proxyward/canary")
	second := c.Registry(lab.Redirect).Second
	for _, tt := range []struct {
		noProxy string
		verdict v1alpha1.Verdict
	}{
		{c.NoProxy(image) + "," + second, v1alpha1.VerdictVerified},
		{c.NoProxy(image), v1alpha1.VerdictWrongRoute},
	} {
		request := c.Under(t, canarytest.Environment(c.ProxyURL(), tt.noProxy))
		request.Role, request.Image = v1alpha1.CanaryInternal, image
		evidence := canary.Prove(t.Context(), request)
		if evidence.Verdict != tt.verdict {
			t.Errorf("NO_PROXY %q: evidence is %+v, want %s", tt.noProxy, evidence, tt.verdict)
		}
		if tt.verdict != v1alpha1.VerdictVerified && !strings.Contains(evidence.Message, second) {
			t.Errorf("message %q does not name %q", evidence.Message, second)
		}
	}
}

func (c *canaryLab) tokenRealm(t *testing.T) {
	image := c.push(t, lab.Token, "proxyward/canary")
	report := canary.Walk(t.Context(), canary.WalkRequest{
		Image: image, Environment: canarytest.Environment(c.ProxyURL(), c.NoProxy(image)), CA: c.CA(),
		Roots: x509.NewCertPool(), Resolver: c,
	})
	if report.Failure != nil {
		t.Fatalf("walk failed: %v", report.Failure)
	}
	for _, hop := range report.Hops {
		if hop.Purpose == canary.PurposeToken {
			if !strings.HasPrefix(hop.Host, "auth.") || hop.Route != v1alpha1.RouteProxy {
				t.Errorf("token hop is %+v, want the second host by the proxy", hop)
			}
			return
		}
	}
	t.Errorf("no hop asks for a token: %+v", report.Hops)
}

func (c *canaryLab) mirror(t *testing.T) {
	mirror, external := c.Registry(lab.Mirror).Host, c.Registry(lab.External).Host
	hosts := "server = \"https://" + external + "\"\n[host.\"https://" + mirror + "\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
	path := "/etc/containerd/certs.d/" + external + "/hosts.toml"
	if err := c.node.WriteFile(t.Context(), path, []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.node.Run(context.Background(), "rm", path); err != nil {
			t.Error(err)
		}
	})
	request := c.Under(t, canarytest.Environment(c.ProxyURL(), mirror))
	request.Role, request.Image = v1alpha1.CanaryExternal, c.push(t, lab.External, "proxyward/mirrored")
	request.Runtime.Hosts = []runtimes.RegistryHosts{{Registry: external, Hosts: []string{"https://" + mirror}, FallsBack: true, File: path}}
	evidence := canary.Prove(t.Context(), request)
	if evidence.Verdict != v1alpha1.VerdictVerified || evidence.Route != v1alpha1.RouteMirror || evidence.ExpectedRoute != v1alpha1.RouteMirror {
		t.Errorf("evidence is %+v, want Verified by the mirror", evidence)
	}
}

func (c *canaryLab) discardedLayers(t *testing.T) {
	const (
		path    = "/etc/containerd/config.toml"
		section = `[plugins."io.containerd.grpc.v1.cri".containerd]` + "\n"
	)
	config, err := c.node.ReadFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(config), section)
	if !found {
		before, after = string(config)+"\n", ""
	}
	discarding := before + section + "discard_unpacked_layers = true\n" + after
	if err := c.node.WriteFile(t.Context(), path, []byte(discarding), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.node.WriteFile(context.Background(), path, config, 0o644); err != nil {
			t.Error(err)
		}
	})
	evidence := c.proveExternal(t, c.ProxyURL())
	// The blobs go when containerd next collects garbage, before or after they are looked for.
	judged := []string{string(pull.ByUnpacked), string(pull.ByContentStore)}
	if evidence.Verdict != v1alpha1.VerdictVerified || !slices.Contains(judged, evidence.BytesJudgedBy) || evidence.Bytes < imagebuild.DefaultSize {
		t.Errorf("evidence is %+v, want Verified", evidence)
	}
}

// unpackedElsewhere has another image hold the layer's snapshot while its blob is gone: nothing is
// transferred then either.
func (c *canaryLab) unpackedElsewhere(t *testing.T) {
	request := c.Under(t, canarytest.Environment(c.ProxyURL(), c.NoProxy(c.internal)))
	sibling := c.Sibling(t, c.external)
	c.Keep(t, request.Runtime.Socket, sibling)
	t.Cleanup(func() { c.Drop(t, request.Runtime.Socket, sibling) })
	digest, err := c.layers[c.external].Digest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.node.Run(t.Context(), "ctr", "--namespace", "k8s.io", "content", "rm", digest.String()); err != nil {
		t.Fatal(err)
	}
	request.Role, request.Image = v1alpha1.CanaryExternal, c.external
	evidence := canary.Prove(t.Context(), request)
	if evidence.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(evidence.Message, digest.String()) {
		t.Errorf("evidence is %+v, want Inconclusive, naming layer %s", evidence, digest)
	}
}

// otherNamespace has another namespace hold the blob.
func (c *canaryLab) otherNamespace(t *testing.T) {
	request := c.Under(t, canarytest.Environment(c.ProxyURL(), c.NoProxy(c.internal)))
	if _, err := c.node.Run(t.Context(), "ctr", "--namespace", "other", "content", "fetch", c.internal); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.node.Run(context.Background(), "ctr", "--namespace", "other", "images", "rm", "--sync", c.internal); err != nil {
			t.Error(err)
		}
	})
	request.Role, request.Image = v1alpha1.CanaryInternal, c.internal
	evidence := canary.Prove(t.Context(), request)
	if evidence.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(evidence.Message, "namespace") {
		t.Errorf("evidence is %+v, want Inconclusive for the other namespace", evidence)
	}
}

func (c *canaryLab) login(t *testing.T) {
	image := c.push(t, lab.Private, "proxyward/canary")
	registry := c.Registry(lab.Private)
	request := c.Under(t, canarytest.Environment(c.ProxyURL(), registry.Host))
	request.Role, request.Image = v1alpha1.CanaryInternal, image
	request.Auth = &canary.RegistryAuth{Username: registry.User, Password: proxyenv.NewSecret(registry.Password, "")}
	if evidence := canary.Prove(t.Context(), request); evidence.Verdict != v1alpha1.VerdictVerified {
		t.Errorf("evidence is %+v, want Verified", evidence)
	}
	request.Auth = nil
	if evidence := canary.Prove(t.Context(), request); evidence.Verdict != v1alpha1.VerdictFailed || !strings.Contains(evidence.Message, "pull secret") {
		t.Errorf("evidence is %+v, want Failed, naming the pull secret", evidence)
	}
}
