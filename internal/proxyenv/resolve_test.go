package proxyenv

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

func TestResolveEntriesWithProvenance(t *testing.T) {
	rev, notes := resolve(t, Input{Profile: profile()})
	want := []v1alpha1.NoProxyEntry{
		{Value: ".cluster.local", Source: "Cluster", Reason: "cluster domain"},
		{Value: ".svc", Source: "Cluster", Reason: "services by their short names"},
		{Value: "10.20.0.0/16", Source: "Profile", Reason: "data centre LAN"},
		{Value: "10.244.0.0/16", Source: "Cluster", Reason: "pod network"},
		{Value: "10.66.0.0/24", Source: "Cluster", Reason: "node network"},
		{Value: "10.96.0.0/16", Source: "Cluster", Reason: "service network"},
		{Value: "127.0.0.0/8", Source: "Loopback", Reason: "this host"},
		{Value: "127.0.0.1", Source: "Loopback", Reason: "this host"},
		{Value: "::1", Source: "Loopback", Reason: "this host"},
		{Value: "api.corp.example", Source: "Cluster", Reason: "API server"},
		{Value: "corp.example", Source: "Profile", Reason: "internal names"},
		{Value: "kubernetes", Source: "Cluster", Reason: "API server's service name"},
		{Value: "kubernetes.default", Source: "Cluster", Reason: "API server's service name"},
		{Value: "kubernetes.default.svc", Source: "Cluster", Reason: "API server's service name"},
		{Value: "kubernetes.default.svc.cluster.local", Source: "Cluster", Reason: "API server's service name"},
		{Value: "localhost", Source: "Loopback", Reason: "this host"},
		{Value: "registry.corp.example:5000", Source: "Registry", Reason: "internal registry"},
	}
	if !reflect.DeepEqual(rev.NoProxy, want) {
		t.Errorf("entries:\n got %v\nwant %v", rev.NoProxy, want)
	}
	if len(notes) != 0 {
		t.Errorf("a complete profile has notes: %v", notes)
	}
}

func TestC06_ListsAreNormalised(t *testing.T) {
	list := SplitList(" Corp.Example,\tB.example\n10.20.0.0/16 , corp.example,,\r\n.X.example *.x.example [fd00::5]:5000")
	want := []string{"corp.example", "b.example", "10.20.0.0/16", ".x.example", "[fd00::5]:5000"}
	if !slices.Equal(list, want) {
		t.Fatalf("SplitList: got %q, want %q", list, want)
	}
	messy := profile(func(s *v1alpha1.ProxyProfileSpec) {
		s.NoProxy.Entries = []v1alpha1.NoProxyRequest{
			{Value: "\tCORP.example "}, {Value: "10.20.99.1/16"}, {Value: "corp.EXAMPLE"}, {Value: "FD00:0::5"},
		}
		s.Cluster.ServiceCIDRs = []string{" 10.96.0.0/16", "10.96.0.0/16\t"}
	})
	first, notes := resolve(t, Input{Profile: messy})
	slices.Reverse(messy.Spec.NoProxy.Entries)
	second, _ := resolve(t, Input{Profile: messy})
	if a, b := RevisionName(first), RevisionName(second); a != b {
		t.Errorf("the order of entries changes the revision: %s and %s", a, b)
	}
	for _, v := range []string{"corp.example", "10.20.0.0/16", "fd00::5"} {
		if find(first.NoProxy, v) == nil {
			t.Errorf("%s is missing from %v", v, values(first.NoProxy))
		}
	}
	if !slices.IsSorted(values(first.NoProxy)) || len(slices.Compact(values(first.NoProxy))) != len(first.NoProxy) {
		t.Errorf("not sorted, or not each once: %v", values(first.NoProxy))
	}
	if !noted(notes, "spec.noProxy.entries[2].value", "same as entries[0]") || !noted(notes, "spec.noProxy.entries[1].value", "host bits") {
		t.Errorf("normalising is not said: %v", notes)
	}
}

func TestC07_OneProxyOnlyIsNoted(t *testing.T) {
	_, notes := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.HTTPS = "" })})
	if !noted(notes, "spec.proxy.https", "go direct") {
		t.Errorf("https traffic going direct is not said: %v", notes)
	}
	_, notes = resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.HTTP = "" })})
	if !noted(notes, "spec.proxy.http", "go direct") {
		t.Errorf("http traffic going direct is not said: %v", notes)
	}
	_, _, err := Resolve(Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Proxy = v1alpha1.Proxy{} })})
	if !slices.Equal(paths(err), []string{"spec.proxy"}) {
		t.Errorf("no proxy at all: got %v", err)
	}
}

func TestC15_RegistryNameIsAddedBesideItsCIDR(t *testing.T) {
	rev, _ := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) {
		s.NoProxy.Entries = []v1alpha1.NoProxyRequest{{Value: "10.20.0.0/16"}}
	})})
	if d := environmentOf(t, rev).decide("https://registry.corp.example:5000/v2/"); !d.Direct || d.Entry.Source != v1alpha1.SourceRegistry {
		t.Errorf("registry by name: %+v", d)
	}
}

func TestC16_RegistriesAsTheRuntimeAsks(t *testing.T) {
	for raw, want := range map[string]struct{ entry, url string }{
		"registry.corp.example":     {"registry.corp.example", "https://registry.corp.example/v2/"},
		"Registry.Corp.Example:443": {"registry.corp.example:443", "https://registry.corp.example/v2/"},
		"registry.corp.example:80":  {"registry.corp.example:80", "http://registry.corp.example/v2/"},
		"10.1.2.3:5000":             {"10.1.2.3:5000", "https://10.1.2.3:5000/v2/"},
		"[fd00::5]:5000":            {"[fd00::5]:5000", "https://[fd00::5]:5000/v2/"},
		"[fd00::5]":                 {"fd00::5", "https://[fd00::5]/v2/"},
		"FD00:0:0::5":               {"fd00::5", "https://[fd00::5]/v2/"},
	} {
		rev, _ := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) {
			s.Registries.Internal = []string{raw}
			s.NoProxy.Entries = nil
		})})
		d := environmentOf(t, rev).decide(want.url)
		if !d.Direct || d.Entry == nil || d.Entry.Value != want.entry {
			t.Errorf("%s: %s goes %+v, want direct by %s", raw, want.url, d, want.entry)
		}
	}
	for _, bad := range []string{"https://registry", "registry/project", "registry:http", "*", ".corp.example", "10.0.0.0/8", ""} {
		_, _, err := Resolve(Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Registries.Internal = []string{bad} })})
		if got := paths(err); !strings.HasPrefix(strings.Join(got, ""), "spec.registries.internal[0]") && bad != ".corp.example" {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestC20_DualStack(t *testing.T) {
	rev, _ := resolve(t, Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) {
		s.Cluster.ServiceCIDRs = []string{"10.96.0.0/16", "FD00:96::/112"}
		s.Cluster.PodCIDRs = []string{"10.244.0.0/16", "fd00:244::/56"}
		s.Cluster.NodeCIDRs = []string{"10.66.0.0/24", "fd00:66::/64"}
		s.Cluster.APIServer = "[fd00::1]:6443"
	})})
	if find(rev.NoProxy, "fd00::1") == nil {
		t.Errorf("the API server's address is not bare: %v", values(rev.NoProxy))
	}
	env := environmentOf(t, rev)
	for _, u := range []string{
		"https://[fd00::1]:6443/healthz", "https://[fd00:96::1]/", "http://[fd00:244::9]:8080/",
		"https://[fd00:66::7]:10250/", "https://10.96.0.1/",
	} {
		if d := env.decide(u); !d.Direct {
			t.Errorf("%s: %+v", u, d)
		}
	}
	if d := env.decide("https://[fd01::1]/"); d.Direct {
		t.Errorf("an address of no network: %+v", d)
	}
}

func TestC21_C22_RequiredFacts(t *testing.T) {
	none := func(s *v1alpha1.ProxyProfileSpec) {
		s.Cluster = v1alpha1.ClusterFacts{}
		s.Registries = v1alpha1.Registries{}
	}
	all := []string{"spec.cluster.apiServer", "spec.cluster.serviceCIDRs", "spec.cluster.podCIDRs", "spec.cluster.nodeCIDRs"}
	const registries = "spec.registries.internal"
	for _, c := range []struct {
		target v1alpha1.Target
		want   []string
	}{
		{v1alpha1.TargetKubelet, all},
		{v1alpha1.TargetSystem, all},
		{v1alpha1.TargetContainerd, []string{"spec.cluster.serviceCIDRs", registries}},
		{v1alpha1.TargetCRIO, []string{"spec.cluster.serviceCIDRs", registries}},
		{v1alpha1.TargetDocker, []string{"spec.cluster.serviceCIDRs", registries}},
		{v1alpha1.TargetK3s, []string{"spec.cluster.serviceCIDRs", registries}},
		{v1alpha1.TargetRKE2, []string{"spec.cluster.serviceCIDRs", registries}},
	} {
		p := profile(none, func(s *v1alpha1.ProxyProfileSpec) { s.Targets = []v1alpha1.Target{c.target} })
		_, _, err := Resolve(Input{Profile: p})
		if got := paths(err); !slices.Equal(got, c.want) {
			t.Errorf("%s: missing facts %v, want %v", c.target, got, c.want)
		}
	}
	// No target named: the runtimes found.
	_, _, err := Resolve(Input{Profile: profile(none, func(s *v1alpha1.ProxyProfileSpec) { s.Targets = nil })})
	if got := paths(err); !slices.Equal(got, []string{"spec.cluster.serviceCIDRs", registries}) {
		t.Errorf("no target: %v", got)
	}
	kubelet := func(s *v1alpha1.ProxyProfileSpec) { s.Targets = []v1alpha1.Target{v1alpha1.TargetKubelet} }
	for _, edit := range []func(*v1alpha1.ProxyProfileSpec){
		func(s *v1alpha1.ProxyProfileSpec) {
			s.Cluster = v1alpha1.ClusterFacts{ServiceCIDRs: []string{}, PodCIDRs: []string{}, NodeCIDRs: []string{}, APIServer: "api:6443"}
		},
		func(s *v1alpha1.ProxyProfileSpec) {
			s.NoProxy.Exclude = []string{"cluster.apiServer", "cluster.serviceCIDRs", "cluster.podCIDRs", "cluster.nodeCIDRs"}
		},
	} {
		resolve(t, Input{Profile: profile(none, kubelet, edit)})
	}
	resolve(t, Input{Profile: profile(none, kubelet), Facts: Facts{ClusterFacts: profile().Spec.Cluster}})
}

func TestC23_ExcludeIsSaid(t *testing.T) {
	bare := func(exclude ...string) *v1alpha1.ProxyProfile {
		return profile(func(s *v1alpha1.ProxyProfileSpec) {
			s.NoProxy.Entries = nil
			s.NoProxy.Exclude = exclude
		})
	}
	for _, exclude := range []string{"api.corp.example", "API.corp.example:6443", "cluster.apiServer"} {
		rev, notes := resolve(t, Input{Profile: bare(exclude)})
		if d := environmentOf(t, rev).decide("https://api.corp.example:6443/"); d.Direct {
			t.Errorf("%s: %+v", exclude, d)
		}
		if !noted(notes, "spec.noProxy.exclude", "as the profile asks") {
			t.Errorf("%s: not said: %v", exclude, notes)
		}
	}
	covered := bare("api.corp.example")
	covered.Spec.NoProxy.Entries = []v1alpha1.NoProxyRequest{{Value: "corp.example", Reason: "internal"}}
	_, notes := resolve(t, Input{Profile: covered})
	if !noted(notes, "spec.noProxy.exclude", "still reached directly: NO_PROXY entry corp.example") {
		t.Errorf("another entry covers it, and that is not said: %v", notes)
	}
	_, notes = resolve(t, Input{Profile: bare("nothing.example")})
	if !noted(notes, "spec.noProxy.exclude", "changes nothing") {
		t.Errorf("an exclusion of nothing is not said: %v", notes)
	}
	own := profile(func(s *v1alpha1.ProxyProfileSpec) { s.NoProxy.Exclude = []string{"10.20.0.0/16"} })
	rev, notes := resolve(t, Input{Profile: own})
	if find(rev.NoProxy, "10.20.0.0/16") == nil || !noted(notes, "spec.noProxy.exclude", "the profile's own") {
		t.Errorf("excluding an own entry: %v", notes)
	}
}

func TestC24_CloudMetadataOfThatCloudOnly(t *testing.T) {
	aws := []string{"169.254.169.254", "fd00:ec2::254"}
	others := []string{"metadata.google.internal", "168.63.129.16", "fd20:ce::254", "fe80::a9fe:a9fe"}
	discovered := Input{Profile: profile(), Facts: Facts{ClusterFacts: v1alpha1.ClusterFacts{Cloud: v1alpha1.CloudAWS}}}
	named := Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Cluster.Cloud = v1alpha1.CloudAWS })}
	for name, in := range map[string]Input{"discovered": discovered, "named": named} {
		rev, _ := resolve(t, in)
		for _, v := range aws {
			if e := find(rev.NoProxy, v); e == nil || e.Source != v1alpha1.SourceCloud {
				t.Errorf("%s: %s: %v", name, v, e)
			}
		}
		for _, v := range others {
			if find(rev.NoProxy, v) != nil {
				t.Errorf("%s: %s of another cloud", name, v)
			}
		}
	}
	none := Input{Profile: profile(func(s *v1alpha1.ProxyProfileSpec) { s.Cluster.Cloud = v1alpha1.CloudNone }), Facts: discovered.Facts}
	for _, in := range []Input{none, {Profile: profile()}} {
		rev, _ := resolve(t, in)
		if find(rev.NoProxy, aws[0]) != nil {
			t.Error("metadata without a cloud")
		}
	}
}

func TestC25_APIServerAddressesInsideNodeNetworksChangeNothing(t *testing.T) {
	two, _ := resolve(t, Input{Profile: profile(), Facts: Facts{APIServerAddresses: []string{"10.66.0.2", "10.66.0.3"}}})
	three, _ := resolve(t, Input{Profile: profile(), Facts: Facts{APIServerAddresses: []string{"10.66.0.2", "10.66.0.4", "10.66.0.3"}}})
	if a, b := RevisionName(two), RevisionName(three); a != b {
		t.Errorf("a control-plane member changes the revision: %s, %s", a, b)
	}
	outside, _ := resolve(t, Input{Profile: profile(), Facts: Facts{APIServerAddresses: []string{"192.0.2.7"}}})
	if find(outside.NoProxy, "192.0.2.7") == nil {
		t.Error("an address outside the node networks is missing")
	}
}

func TestC05_TooLongAListIsRefusedWithItsSize(t *testing.T) {
	entries := func(n, width int) func(*v1alpha1.ProxyProfileSpec) {
		return func(s *v1alpha1.ProxyProfileSpec) {
			s.NoProxy.Entries = nil
			for i := range n {
				s.NoProxy.Entries = append(s.NoProxy.Entries, v1alpha1.NoProxyRequest{
					Value: fmt.Sprintf("host-%05d.%s.example", i, strings.Repeat("x", width)),
				})
			}
		}
	}
	rev, _ := resolve(t, Input{Profile: profile(entries(3000, 10))})
	if len(rev.NoProxy) < 3000 {
		t.Errorf("only %d entries", len(rev.NoProxy))
	}
	_, _, err := Resolve(Input{Profile: profile(entries(3000, 40))})
	if !slices.Equal(paths(err), []string{"spec.noProxy.entries"}) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("got %v", err)
	}
}

func TestResolveRefusesWhatItCannotUse(t *testing.T) {
	for want, edit := range map[string]func(*v1alpha1.ProxyProfileSpec){
		"spec.proxy.http":               func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.HTTP = "ftp://proxy:21" },
		"spec.proxy.https":              func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.HTTPS = "proxy:3128" },
		"spec.proxy.trustedCA":          func(s *v1alpha1.ProxyProfileSpec) { s.Proxy.TrustedCA = &v1alpha1.ConfigMapKey{ConfigMapName: "ca"} },
		"spec.cluster.serviceCIDRs[0]":  func(s *v1alpha1.ProxyProfileSpec) { s.Cluster.ServiceCIDRs = []string{"10.96.0.1"} },
		"spec.cluster.apiServer":        func(s *v1alpha1.ProxyProfileSpec) { s.Cluster.APIServer = "https://api:6443" },
		"spec.cluster.domain":           func(s *v1alpha1.ProxyProfileSpec) { s.Cluster.Domain = "a b" },
		"spec.noProxy.entries[0].value": func(s *v1alpha1.ProxyProfileSpec) { s.NoProxy.Entries[0].Value = "10.*" },
		"spec.noProxy.entries[1].value": func(s *v1alpha1.ProxyProfileSpec) { s.NoProxy.Entries[1].Value = "*" },
	} {
		before := profile(edit)
		p := before.DeepCopy()
		_, _, err := Resolve(Input{Profile: p})
		if got := paths(err); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %v", want, err)
		}
		if !reflect.DeepEqual(before, p) {
			t.Errorf("%s: Resolve changed the profile", want)
		}
	}
}

func TestRevisionName(t *testing.T) {
	base, _ := resolve(t, Input{Profile: profile()})
	again, _ := resolve(t, Input{Profile: profile()})
	if a, b := RevisionName(base), RevisionName(again); a != b || !strings.HasPrefix(a, "corp-") {
		t.Errorf("names %s and %s", a, b)
	}
	ca := func(sha string) *v1alpha1.ProxyRevisionSpec {
		rev, _ := resolve(t, Input{CASHA256: strings.Repeat(sha, 64), Profile: profile(func(s *v1alpha1.ProxyProfileSpec) {
			s.Proxy.TrustedCA = &v1alpha1.ConfigMapKey{ConfigMapName: "ca"}
		})})
		return rev
	}
	if RevisionName(ca("a")) == RevisionName(ca("b")) {
		t.Error("another CA has the same revision")
	}
	if ca("a").TrustedCA.Key != "ca.crt" {
		t.Error("defaults are not applied")
	}
	long := base.DeepCopy()
	long.Profile = strings.Repeat("a", 235) + "-" + strings.Repeat("b", 17)
	if name := RevisionName(long); len(name) > 253 || strings.Contains(name, "--") {
		t.Errorf("long name: %d bytes: %s", len(name), name)
	}
}
