package preflight

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/bootstrap"
	"github.com/proxyward/proxyward/canary/canarytest"
	"github.com/proxyward/proxyward/canary/imagebuild"
	"github.com/proxyward/proxyward/internal/node"
	"github.com/proxyward/proxyward/internal/secrettest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// site is a host's tree without a systemd, a proxy and two registries on loopback, and a profile
// that works there.
type site struct {
	t                  *testing.T
	tree               string
	names              *canarytest.Names
	ca                 *canarytest.CA
	internal, external *canarytest.Registry
	profile            *v1alpha1.ProxyProfile
	input              bootstrap.Input
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, tree: t.TempDir(), names: &canarytest.Names{}, ca: canarytest.NewCA(t, "site CA")}
	s.internal = canarytest.NewRegistry(t, s.names, s.ca, "registry.corp.example")
	s.external = canarytest.NewRegistry(t, s.names, s.ca, "registry.external.example")
	s.write("usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\nKillMode=process\n")
	s.profile = &v1alpha1.ProxyProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "corp"},
		Spec: v1alpha1.ProxyProfileSpec{
			Cluster: v1alpha1.ClusterFacts{
				Domain: "cluster.local", ServiceCIDRs: []string{"10.96.0.0/16"}, PodCIDRs: []string{"10.244.0.0/16"},
				NodeCIDRs: []string{"10.66.0.0/24"}, Cloud: v1alpha1.CloudAWS,
			},
			NoProxy:    v1alpha1.NoProxy{Entries: []v1alpha1.NoProxyRequest{{Value: "corp.example", Reason: "internal names"}}},
			Registries: v1alpha1.Registries{Internal: []string{s.internal.Host}},
			Canary: v1alpha1.Canary{
				Internal: &v1alpha1.CanaryImage{Image: s.push(s.internal)},
				External: &v1alpha1.CanaryImage{Image: s.push(s.external)},
			},
		},
	}
	s.input = bootstrap.Input{Profile: s.profile}
	s.proxy(canarytest.ProxyRule{})
	return s
}

func (s *site) push(r *canarytest.Registry) string {
	s.t.Helper()
	image, err := imagebuild.New(0, "amd64")
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Push(s.t, "proxyward/canary:1", image)
}

// proxy puts the profile on a proxy of its own.
func (s *site) proxy(rule canarytest.ProxyRule) *canarytest.Proxy {
	s.t.Helper()
	p := canarytest.NewProxy(s.t, s.names, "proxy.corp.example", rule)
	s.proxyAt(fmt.Sprintf("http://proxy.corp.example:%d", p.Addr.Port()))
	return p
}

func (s *site) proxyAt(url string) { s.profile.Spec.Proxy.HTTP, s.profile.Spec.Proxy.HTTPS = url, url }

func (s *site) write(path, content string) {
	s.t.Helper()
	path = filepath.Join(s.tree, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// run runs every check, and holds each run to what all of them promise: nothing changes, the
// report has its published form, and no check has two meanings.
func (s *site) run() Report {
	s.t.Helper()
	before := snapshot(s.t, s.tree)
	host, err := node.Open(s.t.Context(), s.tree)
	if err != nil {
		s.t.Fatal(err)
	}
	defer host.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.PEM)
	report, err := Run(s.t.Context(), host, Request{Input: s.input, Resolver: s.names, Roots: roots})
	if err != nil {
		s.t.Fatal(err)
	}
	if after := snapshot(s.t, s.tree); after != before {
		s.t.Errorf("the tree changed\nbefore:\n%s\nafter:\n%s", before, after)
	}
	raw, err := json.Marshal(report)
	if err != nil {
		s.t.Fatal(err)
	}
	validate(s.t, raw)
	if s.input.Credentials != nil {
		secrettest.Check(s.t, "the report", string(raw), s.input.Credentials)
	}
	return report
}

// snapshot is everything that could change in a tree.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "%s %s %d %q\n", strings.TrimPrefix(path, dir), info.Mode(), info.ModTime().UnixNano(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const schemaFile = "../../docs/spec/preflight.schema.json"

// validate holds a report to the published schema.
func validate(t *testing.T, raw []byte) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("the report has not its published form: %v\n%s", err, raw)
	}
}

// of returns the results of one check.
func of(r Report, id string) []Result {
	var out []Result
	for _, c := range r.Checks {
		if c.ID == id {
			out = append(out, c)
		}
	}
	return out
}

// only returns the one result of a check and expects its verdict and what it must say.
func only(t *testing.T, r Report, id string, verdict Verdict, says ...string) Result {
	t.Helper()
	found := of(r, id)
	if len(found) != 1 {
		t.Fatalf("%s has %d results: %+v", id, len(found), found)
	}
	expect(t, found[0], verdict, says...)
	return found[0]
}

func expect(t *testing.T, c Result, verdict Verdict, says ...string) {
	t.Helper()
	if c.Verdict != verdict {
		t.Errorf("%s: %s, want %s: %q", c.ID, c.Verdict, verdict, c.Seen)
	}
	text := strings.Join(append(slices.Clone(c.Seen), c.Fix), "\n")
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("%s does not say %q:\n%s", c.ID, s, text)
		}
	}
}
