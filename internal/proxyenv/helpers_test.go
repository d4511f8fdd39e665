package proxyenv

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// profile returns a complete profile, changed by edits.
func profile(edits ...func(*v1alpha1.ProxyProfileSpec)) *v1alpha1.ProxyProfile {
	p := &v1alpha1.ProxyProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "corp"},
		Spec: v1alpha1.ProxyProfileSpec{
			NodeSelector: &metav1.LabelSelector{},
			Proxy: v1alpha1.Proxy{
				HTTP:  "http://proxy.corp.example:3128",
				HTTPS: "http://proxy.corp.example:3128",
			},
			Cluster: v1alpha1.ClusterFacts{
				Domain:       "cluster.local",
				ServiceCIDRs: []string{"10.96.0.0/16"},
				PodCIDRs:     []string{"10.244.0.0/16"},
				NodeCIDRs:    []string{"10.66.0.0/24"},
				APIServer:    "api.corp.example:6443",
			},
			Registries: v1alpha1.Registries{Internal: []string{"registry.corp.example:5000"}},
			NoProxy: v1alpha1.NoProxy{Entries: []v1alpha1.NoProxyRequest{
				{Value: "10.20.0.0/16", Reason: "data centre LAN"},
				{Value: "corp.example", Reason: "internal names"},
			}},
			Targets: []v1alpha1.Target{v1alpha1.TargetContainerd, v1alpha1.TargetKubelet},
		},
	}
	for _, edit := range edits {
		edit(&p.Spec)
	}
	return p
}

func resolve(t *testing.T, in Input) (*v1alpha1.ProxyRevisionSpec, []Note) {
	t.Helper()
	rev, notes, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	return rev, notes
}

func values(entries []v1alpha1.NoProxyEntry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Value)
	}
	return out
}

func find(entries []v1alpha1.NoProxyEntry, value string) *v1alpha1.NoProxyEntry {
	i := slices.IndexFunc(entries, func(e v1alpha1.NoProxyEntry) bool { return e.Value == value })
	if i < 0 {
		return nil
	}
	return &entries[i]
}

func paths(err error) []string {
	var fes v1alpha1.FieldErrors
	if !errors.As(err, &fes) {
		return nil
	}
	var out []string
	for _, fe := range fes {
		out = append(out, fe.Path)
	}
	return out
}

func noted(notes []Note, path, text string) bool {
	return slices.ContainsFunc(notes, func(n Note) bool {
		return n.Path == path && strings.Contains(n.Message, text)
	})
}
