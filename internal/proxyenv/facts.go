package proxyenv

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// defaultDomain is the cluster domain of a cluster that says nothing else, as kubeadm and the
// kubelet's documentation have it.
const defaultDomain = "cluster.local"

// The names by which noProxy.exclude leaves out a whole fact, as ProxyProfile documents them.
const (
	factAPIServer    = "cluster.apiserver"
	factServiceCIDRs = "cluster.servicecidrs"
	factPodCIDRs     = "cluster.podcidrs"
	factNodeCIDRs    = "cluster.nodecidrs"
)

// cluster merges what the profile says with what was discovered, the profile first, and checks it.
func (r *resolver) cluster() v1alpha1.ClusterFacts {
	given, found := r.spec.Cluster, r.facts.ClusterFacts
	out := v1alpha1.ClusterFacts{
		ServiceCIDRs: r.networks("serviceCIDRs", given.ServiceCIDRs, found.ServiceCIDRs),
		PodCIDRs:     r.networks("podCIDRs", given.PodCIDRs, found.PodCIDRs),
		NodeCIDRs:    r.networks("nodeCIDRs", given.NodeCIDRs, found.NodeCIDRs),
		APIServer:    r.apiServer(),
		Cloud:        given.Cloud,
	}
	if out.Cloud == "" {
		out.Cloud = found.Cloud
	}
	out.Domain = r.domain()
	return out
}

func (r *resolver) domain() string {
	path, raw := "spec.cluster.domain", r.spec.Cluster.Domain
	if raw == "" {
		path, raw = "status.facts.domain", r.facts.Domain
	}
	if raw == "" {
		r.note("spec.cluster.domain", "", "it is neither given nor discovered, so %s is assumed", defaultDomain)
		return defaultDomain
	}
	name, ok := asciiName(strings.ToLower(strings.Trim(strings.TrimSpace(raw), ".")))
	if !ok {
		r.fail(path, raw, "it is not a domain", "write the cluster's DNS domain, such as cluster.local")
	}
	return name
}

// networks returns CIDRs in their normal form, sorted, each once; nil stays nil.
func (r *resolver) networks(name string, given, found []string) []string {
	path, list := "spec.cluster."+name, given
	if list == nil {
		path, list = "status.facts."+name, found
	}
	if list == nil {
		return nil
	}
	out := []string{}
	for i, raw := range list {
		_, network, err := net.ParseCIDR(strings.TrimSpace(raw))
		if err != nil {
			fix := "write a network, such as 10.96.0.0/16"
			if addr, err := netip.ParseAddr(strings.TrimSpace(raw)); err == nil {
				fix = fmt.Sprintf("write %s/%d for that one address", addr, addr.BitLen())
			}
			r.fail(fmt.Sprintf("%s[%d]", path, i), raw, "it is not a CIDR", fix)
			continue
		}
		out = append(out, network.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// apiServer returns host:port in its normal form.
func (r *resolver) apiServer() string {
	path, raw := "spec.cluster.apiServer", r.spec.Cluster.APIServer
	if raw == "" {
		path, raw = "status.facts.apiServer", r.facts.APIServer
	}
	if raw == "" {
		return ""
	}
	text := strings.TrimSpace(raw)
	e := parseEntry(text)
	if e.kind == kindDead {
		if e2 := registryEntry(text); e2.kind != kindDead {
			e = e2
		}
	}
	if e.kind != kindName && e.kind != kindAddress {
		r.fail(path, v1alpha1.MaskURL(raw), "it is not the host and port of an API server", "write host:port, an IPv6 address as [address]:port")
		return ""
	}
	return e.value()
}

// requireFacts fails for each fact that a target needs and that is unknown.
func (r *resolver) requireFacts(c v1alpha1.ClusterFacts) {
	excluded := r.excludedSet()
	need := func(known bool, fact, path, example string, why map[v1alpha1.Target]string) {
		if known || excluded[fact] {
			return
		}
		for _, t := range r.targets {
			if reason, ok := why[t]; ok {
				r.fail(path, "", fmt.Sprintf("it is neither given nor discovered, and the target %s needs it: %s", t, reason), example)
				return
			}
		}
	}
	const direct = "must be reached without the proxy"
	need(r.spec.Cluster.APIServer != "" || r.facts.APIServer != "", factAPIServer, "spec.cluster.apiServer",
		"write host:port as the nodes' kubeconfig has it, or put cluster.apiServer into spec.noProxy.exclude when it is reached through the proxy",
		onlyKubelet("the API server "+direct))
	need(c.ServiceCIDRs != nil, factServiceCIDRs, "spec.cluster.serviceCIDRs",
		"write all service networks, such as [10.96.0.0/16], or [] when there are none",
		everyTarget("services "+direct+", also by the CNI plugins and credential helpers that inherit a runtime's environment"))
	need(c.PodCIDRs != nil, factPodCIDRs, "spec.cluster.podCIDRs",
		"write all pod networks, such as [10.244.0.0/16], or [] when there are none",
		onlyKubelet("pods "+direct))
	need(c.NodeCIDRs != nil, factNodeCIDRs, "spec.cluster.nodeCIDRs",
		"write the networks of the nodes' own addresses, such as [10.66.0.0/24], or [] when there are none",
		onlyKubelet("other nodes "+direct))
	need(r.spec.Registries.Internal != nil, "registries.internal", "spec.registries.internal",
		"write each registry as images name it, such as [registry.corp.example:5000], or [] when there are none",
		onlyRuntimes("internal registries "+direct+", and nothing but the profile knows them"))
}

// onlyKubelet gives the reason for targets that talk to the API server: the kubelet, and the
// manager's environment, which the kubelet inherits.
func onlyKubelet(why string) map[v1alpha1.Target]string {
	return map[v1alpha1.Target]string{v1alpha1.TargetKubelet: why, v1alpha1.TargetSystem: why}
}

func onlyRuntimes(why string) map[v1alpha1.Target]string {
	return map[v1alpha1.Target]string{
		v1alpha1.TargetContainerd: why, v1alpha1.TargetCRIO: why, v1alpha1.TargetDocker: why,
		v1alpha1.TargetK3s: why, v1alpha1.TargetRKE2: why,
	}
}

func everyTarget(why string) map[v1alpha1.Target]string {
	all := onlyRuntimes(why)
	for t, w := range onlyKubelet(why) {
		all[t] = w
	}
	return all
}
