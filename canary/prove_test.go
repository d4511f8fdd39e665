package canary_test

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/canary/canarytest"
	"github.com/proxyward/proxyward/canary/imagebuild"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

func TestMain(m *testing.M) { canarytest.Main(m) }

// office is a site on loopback whose daemon is a process of its own.
type office struct {
	canarytest.CRIImages
	names              *canarytest.Names
	ca                 *canarytest.CA
	internal, external *canarytest.Registry
	proxy              *canarytest.Proxy
	images             map[string]v1.Image
	daemon             canarytest.DaemonConfig
	dead               int
}

func newOffice(t *testing.T, daemon canarytest.DaemonConfig) *office {
	t.Helper()
	o := &office{names: &canarytest.Names{}, ca: canarytest.NewCA(t, "office CA"), images: map[string]v1.Image{}, daemon: daemon}
	o.internal = canarytest.NewRegistry(t, o.names, o.ca, "registry.office.test")
	o.external = canarytest.NewRegistry(t, o.names, o.ca, "registry.outside.test")
	o.dead = closedPort(t, o.names)
	o.proxy = canarytest.NewProxy(t, o.names, "proxy.site.test", canarytest.ProxyRule{User: "svc", Password: plantedPassword})
	for _, registry := range []*canarytest.Registry{o.internal, o.external} {
		image, err := imagebuild.New(0, "amd64")
		if err != nil {
			t.Fatal(err)
		}
		o.images[registry.Push(t, "proxyward/canary:1", image)] = image
	}
	return o
}

func (o *office) Under(t *testing.T, environment proxyenv.Environment) canary.Request {
	daemon := canarytest.StartDaemon(t, o.daemon, o.names, o.ca, environment)
	return canary.Request{
		Runtime:     runtimes.Runtime{Target: v1alpha1.TargetContainerd, API: runtimes.PullByCRI, Socket: daemon.Socket},
		MainPID:     daemon.PID,
		Environment: environment, Timeout: 20 * time.Second,
		CA: o.ca.PEM, Roots: x509.NewCertPool(), Resolver: o.names,
	}
}

func (o *office) ProxyURL() string {
	return fmt.Sprintf("http://svc:pl%%40nted%%3As3cret%%2540@proxy.site.test:%d", o.proxy.Addr.Port())
}
func (o *office) DeadProxyURL() string {
	return fmt.Sprintf("http://svc:pl%%40nted%%3As3cret%%2540@proxy.site.test:%d", o.dead)
}
func (o *office) Internal() string { return o.internal.Host + "/proxyward/canary:1" }
func (o *office) External() string { return o.external.Host + "/proxyward/canary:1" }
func (o *office) NoProxy(image string) string {
	host, _, _ := strings.Cut(image, "/")
	return host
}
func (o *office) OpenDirect(*testing.T) {} // on loopback everything is

func (o *office) registry(image string) *canarytest.Registry {
	if strings.HasPrefix(image, o.internal.Host) {
		return o.internal
	}
	return o.external
}

func (o *office) Sibling(t *testing.T, image string) string {
	t.Helper()
	sibling, err := mutate.Config(o.images[image], v1.Config{Labels: map[string]string{"is": "another"}})
	if err != nil {
		t.Fatal(err)
	}
	return o.registry(image).Push(t, "somebody/else:1", sibling)
}

func (o *office) Alias(t *testing.T, image string) string {
	t.Helper()
	return o.registry(image).Push(t, "somebody/alias:1", o.images[image])
}

func TestProveConforms(t *testing.T) {
	for _, tt := range []struct {
		name   string
		daemon canarytest.DaemonConfig
	}{
		{"like containerd", canarytest.DaemonConfig{}},
		{"like containerd that discards unpacked layers", canarytest.DaemonConfig{Discard: true}},
	} {
		t.Run(tt.name, func(t *testing.T) { canarytest.Conform(t, newOffice(t, tt.daemon)) })
	}
}

func (o *office) prove(t *testing.T, image string, role v1alpha1.CanaryRole) v1alpha1.CanaryEvidence {
	t.Helper()
	request := o.Under(t, canarytest.Environment(o.ProxyURL(), o.internal.Host))
	request.Role, request.Image = role, image
	return canary.Prove(t.Context(), request)
}

func TestProveBySocketCountersAlone(t *testing.T) {
	o := newOffice(t, canarytest.DaemonConfig{Plain: true})
	evidence := o.prove(t, o.External(), v1alpha1.CanaryExternal)
	if evidence.Verdict != v1alpha1.VerdictVerified || evidence.BytesJudgedBy != "socket counters" || evidence.Bytes < imagebuild.DefaultSize {
		t.Errorf("evidence is %+v, want Verified by socket counters", evidence)
	}
	// Without the process nobody can tell, and that is said.
	request := o.Under(t, canarytest.Environment(o.ProxyURL(), o.internal.Host))
	request.Role, request.Image, request.MainPID = v1alpha1.CanaryExternal, o.External(), 0
	evidence = canary.Prove(t.Context(), request)
	if evidence.Verdict != v1alpha1.VerdictInconclusive || evidence.BytesJudgedBy != "unknown" || evidence.Route != v1alpha1.RouteUnknown {
		t.Errorf("evidence is %+v, want Inconclusive, judged by nothing", evidence)
	}
}

func TestC45_WhatCannotBeMadeFreshIsNotVerified(t *testing.T) {
	o := newOffice(t, canarytest.DaemonConfig{})
	layers, err := o.images[o.External()].Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(o.External())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		daemon canarytest.DaemonConfig
		kept   bool
		says   string
	}{
		{"a blob in another namespace", canarytest.DaemonConfig{Elsewhere: []string{digest.String()}}, false, "namespace"},
		{"an image that the runtime pins", canarytest.DaemonConfig{Pinned: ref.Name()}, true, "pins it"},
		{"an image that a container uses", canarytest.DaemonConfig{InUse: ref.Name()}, true, `container "workload"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o.daemon = tt.daemon
			request := o.Under(t, canarytest.Environment(o.ProxyURL(), o.internal.Host))
			if tt.kept {
				o.Keep(t, request.Runtime.Socket, o.External())
			}
			request.Role, request.Image = v1alpha1.CanaryExternal, o.External()
			evidence := canary.Prove(t.Context(), request)
			if evidence.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(evidence.Message, tt.says) {
				t.Errorf("evidence is %+v, want Inconclusive, saying %q", evidence, tt.says)
			}
			if kept := o.Has(t, request.Runtime.Socket, o.External()); kept != tt.kept {
				t.Errorf("the image is there afterwards: %v, want %v", kept, tt.kept)
			}
		})
	}
}

func TestC61_OverloadedRegistryIsInconclusive(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		o := newOffice(t, canarytest.DaemonConfig{})
		o.external.Rule(canarytest.Rule{Status: status})
		evidence := o.prove(t, o.External(), v1alpha1.CanaryExternal)
		if evidence.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(evidence.Message, fmt.Sprint(status)) {
			t.Errorf("status %d: evidence is %+v, want Inconclusive", status, evidence)
		}
	}
}

func TestC17_FailedPullNamesTheSecondHost(t *testing.T) {
	o := newOffice(t, canarytest.DaemonConfig{})
	o.internal.Rule(canarytest.Rule{BlobsAt: "blobs.nowhere.test:443"})
	evidence := o.prove(t, o.Internal(), v1alpha1.CanaryInternal)
	if !strings.Contains(evidence.Message, "blobs.nowhere.test:443") || evidence.Verdict == v1alpha1.VerdictVerified {
		t.Errorf("evidence is %+v, want the second host named", evidence)
	}
}

func TestRedirectedLayersAreRecognised(t *testing.T) {
	for _, tt := range []struct {
		name    string
		direct  bool
		verdict v1alpha1.Verdict
	}{
		{"a second host that NO_PROXY names too", true, v1alpha1.VerdictVerified},
		{"C17 a second host that goes by the proxy", false, v1alpha1.VerdictWrongRoute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOffice(t, canarytest.DaemonConfig{})
			blobs := canarytest.NewRegistry(t, o.names, o.ca, "blobs.office.test")
			blobs.Push(t, "proxyward/canary:1", o.images[o.Internal()])
			o.internal.Rule(canarytest.Rule{BlobsAt: blobs.Host})
			noProxy := o.internal.Host
			if tt.direct {
				noProxy += "," + blobs.Host
			}
			request := o.Under(t, canarytest.Environment(o.ProxyURL(), noProxy))
			request.Role, request.Image = v1alpha1.CanaryInternal, o.Internal()
			evidence := canary.Prove(t.Context(), request)
			if evidence.Verdict != tt.verdict {
				t.Fatalf("evidence is %+v, want %s", evidence, tt.verdict)
			}
			if tt.verdict == v1alpha1.VerdictWrongRoute && !strings.Contains(evidence.Message, blobs.Host) {
				t.Errorf("message %q does not name %q", evidence.Message, blobs.Host)
			}
		})
	}
}

func TestProveEndsAStuckPull(t *testing.T) {
	o := newOffice(t, canarytest.DaemonConfig{Stuck: true})
	request := o.Under(t, canarytest.Environment(o.ProxyURL(), o.internal.Host))
	request.Role, request.Image, request.Timeout = v1alpha1.CanaryExternal, o.External(), 300*time.Millisecond
	evidence := canary.Prove(t.Context(), request)
	if evidence.Verdict != v1alpha1.VerdictFailed || !strings.Contains(evidence.Message, "no end after 300ms") {
		t.Errorf("evidence is %+v, want Failed at the timeout", evidence)
	}
}

func TestProveWithoutADaemon(t *testing.T) {
	for _, tt := range []struct {
		name, image string
		runtime     runtimes.Runtime
		says        string
	}{
		{"no socket", "registry.test/canary:1", runtimes.Runtime{API: runtimes.PullByCRI, Socket: "/nonexistent/cri.sock"}, "/nonexistent/cri.sock"},
		{"no Docker socket", "registry.test/canary:1", runtimes.Runtime{API: runtimes.PullByDocker, Socket: "/nonexistent/docker.sock"}, "/nonexistent/docker.sock"},
		{"no image", "Not An Image", runtimes.Runtime{API: runtimes.PullByCRI, Socket: "/nonexistent/cri.sock"}, "Not An Image"},
		{"pulls nothing", "registry.test/canary:1", runtimes.Runtime{Target: v1alpha1.TargetKubelet, API: runtimes.PullNone}, "it pulls no images"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			evidence := canary.Prove(t.Context(), canary.Request{Role: v1alpha1.CanaryInternal, Image: tt.image, Runtime: tt.runtime})
			if evidence.Verdict != v1alpha1.VerdictFailed || !strings.Contains(evidence.Message, tt.says) {
				t.Errorf("evidence is %+v, want Failed, saying %q", evidence, tt.says)
			}
		})
	}
}

func TestC54_EvidenceHoldsNoPassword(t *testing.T) {
	o := newOffice(t, canarytest.DaemonConfig{})
	o.proxy = canarytest.NewProxy(t, o.names, "proxy.site.test", canarytest.ProxyRule{User: "svc", Password: "another"})
	evidence := o.prove(t, o.External(), v1alpha1.CanaryExternal)
	if evidence.Verdict != v1alpha1.VerdictFailed || !strings.Contains(evidence.Message, "407") {
		t.Errorf("evidence is %+v, want Failed with the proxy's 407", evidence)
	}
	if all := fmt.Sprintf("%+v", evidence); strings.Contains(all, "nted") || strings.Contains(all, "s3cret") {
		t.Errorf("the password is in the evidence: %s", all)
	}
}
