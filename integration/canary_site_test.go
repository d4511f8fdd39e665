//go:build linux

package integration

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/canary/canarytest"
	"github.com/proxyward/proxyward/canary/imagebuild"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// canaryLab is a lab with one node, as a site for the canaries' conformance suite.
type canaryLab struct {
	*lab.Lab
	canarytest.CRIImages
	runtime            runtimes.Runtime
	node               *lab.Node
	internal, external string
	layers             map[string]v1.Layer
}

func startCanaryLab(t *testing.T, spec lab.NodeSpec) *canaryLab {
	t.Helper()
	spec.Name = "n1"
	l := lab.Start(t, lab.Config{Nodes: []lab.NodeSpec{spec}})
	c := &canaryLab{Lab: l, node: l.Node(spec.Name), layers: map[string]v1.Layer{}}
	c.runtime = runtimes.Runtime{
		Target: v1alpha1.TargetContainerd, Unit: "containerd.service", API: runtimes.PullByCRI,
		Socket: filepath.Join(c.node.Live(), lab.ContainerdSocket),
	}
	c.internal = c.push(t, lab.Internal, "proxyward/canary")
	c.external = c.push(t, lab.External, "proxyward/canary")
	return c
}

// push makes a canary whose layer is kept for siblings and aliases.
func (c *canaryLab) push(t *testing.T, registry, repository string) string {
	t.Helper()
	layer, err := lab.RandomLayer(imagebuild.DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	image := c.pushLayers(t, registry, repository, layer)
	c.layers[image] = layer
	return image
}

func (c *canaryLab) pushLayers(t *testing.T, registry, repository string, layers ...v1.Layer) string {
	t.Helper()
	image, err := c.PushImage(t.Context(), registry, repository, "1", layers...)
	if err != nil {
		t.Fatal(err)
	}
	return image.Ref
}

// LookupNetIP resolves a name as the node does, for a walk that is made on the host.
func (c *canaryLab) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	found, err := c.node.Exec(ctx, "getent", "ahosts", host)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for line := range strings.Lines(string(found.Stdout)) {
		addr, err := netip.ParseAddr(strings.Fields(line)[0])
		if err != nil {
			return nil, err
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

// Under restarts the daemon with an environment.
func (c *canaryLab) Under(t *testing.T, environment proxyenv.Environment) canary.Request {
	t.Helper()
	var lines strings.Builder
	for _, v := range environment.Vars {
		fmt.Fprintf(&lines, "%s=%q\n", v.Name, v.Value.Reveal())
	}
	for path, content := range map[string]string{
		"/etc/canary-test.env": lines.String(),
		"/etc/systemd/system/" + c.runtime.Unit + ".d/canary-test.conf": "[Service]\nEnvironmentFile=/etc/canary-test.env\n",
	} {
		if err := c.node.WriteFile(t.Context(), path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"systemctl", "daemon-reload"}, {"systemctl", "reset-failed", c.runtime.Unit}, {"systemctl", "restart", c.runtime.Unit},
	} {
		if _, err := c.node.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	cri, err := c.node.CRI(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := cri.Close(); err != nil {
		t.Fatal(err)
	}
	return canary.Request{
		Runtime: c.runtime,
		MainPID: c.hostPID(t, c.runtime.Unit), Environment: environment, Timeout: 30 * time.Second,
		CA: c.CA(), Roots: x509.NewCertPool(), Resolver: c,
	}
}

// hostPID returns the host's number of a unit's main process.
func (c *canaryLab) hostPID(t *testing.T, unit string) int {
	t.Helper()
	inner, err := c.node.MainPID(t.Context(), unit)
	if err != nil {
		t.Fatal(err)
	}
	namespace := func(pid string) string {
		link, err := os.Readlink(filepath.Join("/proc", pid, "ns/pid"))
		if err != nil {
			return "" // it has ended
		}
		return link
	}
	want := namespace(strconv.Itoa(c.node.PID()))
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range statuses {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, after, ok := strings.Cut(string(raw), "\nNSpid:")
		if !ok {
			continue
		}
		line, _, _ := strings.Cut(after, "\n")
		pids := strings.Fields(line)
		if len(pids) > 1 && pids[len(pids)-1] == strconv.Itoa(inner) && namespace(pids[0]) == want {
			pid, err := strconv.Atoi(pids[0])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("looking for process %d of node %q on the host: it is not there", inner, c.node.Name)
	return 0
}

func (c *canaryLab) ProxyURL() string { return c.Proxy(lab.Auth).URLWithCredentials() }
func (c *canaryLab) Internal() string { return c.internal }
func (c *canaryLab) External() string { return c.external }

// DeadProxyURL has the right host and a port of its that nothing listens at.
func (c *canaryLab) DeadProxyURL() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(c.Proxy(lab.Auth).URL(), "http://"), ":")
	return "http://" + host + ":9"
}

func (c *canaryLab) NoProxy(image string) string {
	host, _, _ := strings.Cut(image, "/")
	return host
}

func (c *canaryLab) registryOf(image string) string {
	for _, name := range lab.Registries() {
		if strings.HasPrefix(image, c.Registry(name).Host+"/") {
			return name
		}
	}
	return ""
}

func (c *canaryLab) Sibling(t *testing.T, image string) string {
	t.Helper()
	own, err := lab.RandomLayer(4096)
	if err != nil {
		t.Fatal(err)
	}
	return c.pushLayers(t, c.registryOf(image), "somebody/else", c.layers[image], own)
}

func (c *canaryLab) Alias(t *testing.T, image string) string {
	t.Helper()
	return c.pushLayers(t, c.registryOf(image), "somebody/alias", c.layers[image])
}

func (c *canaryLab) OpenDirect(t *testing.T) {
	t.Helper()
	if err := c.OpenDirectRoute(t.Context(), c.node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.CloseDirectRoute(context.Background(), c.node); err != nil {
			t.Error(err)
		}
	})
}
