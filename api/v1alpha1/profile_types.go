package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ProxyProfile says which proxy the container runtimes of the selected nodes use, what goes
// around it, how that is proven, and how a change of it rolls out.
//
// Whoever may write a ProxyProfile is root on every node it selects.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pp,categories=proxyward
// +kubebuilder:printcolumn:name=Nodes,type=integer,JSONPath=`.status.nodes.selected`
// +kubebuilder:printcolumn:name=Done,type=integer,JSONPath=`.status.nodes.done`
// +kubebuilder:printcolumn:name=Working,type=integer,JSONPath=`.status.nodes.working`
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.nodes.failed`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`,priority=1
// +kubebuilder:printcolumn:name=Paused,type=boolean,JSONPath=`.spec.rollout.paused`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ProxyProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProxyProfileSpec   `json:"spec"`
	Status ProxyProfileStatus `json:"status,omitempty"`
}

// ProxyProfileList is a list of ProxyProfiles.
//
// +kubebuilder:object:root=true
type ProxyProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProxyProfile `json:"items"`
}

// ProxyProfileSpec is what a person asks for.
type ProxyProfileSpec struct {
	// nodeSelector chooses the nodes. It is required; an empty selector ({}) knowingly says every
	// node.
	NodeSelector *metav1.LabelSelector `json:"nodeSelector"`

	// controlPlane says what happens to selected nodes that carry the control-plane role label:
	// Exclude leaves them alone; Last takes them after all others, one at a time across all
	// profiles.
	// +kubebuilder:default=Exclude
	// +optional
	ControlPlane ControlPlanePolicy `json:"controlPlane,omitempty"`

	// proxy is the way out.
	Proxy Proxy `json:"proxy"`

	// noProxy is what goes around the proxy beyond what is computed.
	// +optional
	NoProxy NoProxy `json:"noProxy,omitempty"`

	// cluster holds facts about the cluster. A fact that is absent is discovered; an empty list
	// says there are none.
	// +optional
	Cluster ClusterFacts `json:"cluster,omitempty"`

	// registries names the registries that are reached without the proxy.
	// +optional
	Registries Registries `json:"registries,omitempty"`

	// targets are the daemons to configure. When absent: the container runtimes found on each
	// node. Kubelet, System and runtimes marked experimental are configured only when named.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Targets []Target `json:"targets,omitempty"`

	// canary names the images whose fresh pull proves a node.
	// +optional
	Canary Canary `json:"canary,omitempty"`

	// drift says what is done about a change on the host that needs no restart: Repair or Report.
	// +kubebuilder:default=Repair
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// rollout bounds how a change moves over the nodes.
	// +optional
	Rollout Rollout `json:"rollout,omitempty"`
}

// ControlPlanePolicy says what happens to control-plane nodes.
// +kubebuilder:validation:Enum=Exclude;Last
type ControlPlanePolicy string

// The control-plane policies.
const (
	ControlPlaneExclude ControlPlanePolicy = "Exclude"
	ControlPlaneLast    ControlPlanePolicy = "Last"
)

// Proxy is the way out of the network.
type Proxy struct {
	// http is the proxy for http:// URLs, as http://host:port, https://host:port or
	// socks5://host:port, without credentials. When absent such traffic goes direct.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	HTTP string `json:"http,omitempty"`

	// https is the proxy for https:// URLs, in the same forms. Registries are https.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	HTTPS string `json:"https,omitempty"`

	// credentialsSecretName names a Secret in Proxyward's namespace with the keys username and
	// password, raw: Proxyward encodes them.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`

	// trustedCA names a ConfigMap in Proxyward's namespace with the certificates of an
	// intercepting proxy.
	// +optional
	TrustedCA *ConfigMapKey `json:"trustedCA,omitempty"`
}

// ConfigMapKey is one key of a ConfigMap in Proxyward's namespace.
type ConfigMapKey struct {
	// configMapName is the ConfigMap's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMapName string `json:"configMapName"`
	// key within it.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:default=ca.crt
	// +optional
	Key string `json:"key,omitempty"`
}

// NoProxy is what goes around the proxy.
type NoProxy struct {
	// entries are hosts, domains, addresses and CIDRs, each with the reason it is there.
	// +listType=map
	// +listMapKey=value
	// +kubebuilder:validation:MaxItems=2000
	// +optional
	Entries []NoProxyRequest `json:"entries,omitempty"`

	// exclude names computed entries to leave out, by their value. A fact's own name
	// (cluster.apiServer, cluster.serviceCIDRs, cluster.podCIDRs, cluster.nodeCIDRs) leaves out
	// everything computed from it, and then it need not be known.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +optional
	// +kubebuilder:validation:items:MaxLength=253
	Exclude []string `json:"exclude,omitempty"`
}

// NoProxyRequest is one NO_PROXY entry asked for.
type NoProxyRequest struct {
	// value is a name, a .domain, an IP address, host:port, or a CIDR. A CIDR matches literal
	// addresses only, never names.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value"`
	// reason is shown wherever the entry is.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ClusterFacts describe the cluster. Each is discovered when absent, and [] says there are none.
type ClusterFacts struct {
	// domain is the cluster's DNS domain.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Domain string `json:"domain,omitempty"`
	// serviceCIDRs of all IP families.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	// +kubebuilder:validation:items:MaxLength=64
	ServiceCIDRs []string `json:"serviceCIDRs,omitzero"`
	// podCIDRs of all IP families.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	// +kubebuilder:validation:items:MaxLength=64
	PodCIDRs []string `json:"podCIDRs,omitzero"`
	// nodeCIDRs are the networks of the nodes' own addresses.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	// +kubebuilder:validation:items:MaxLength=64
	NodeCIDRs []string `json:"nodeCIDRs,omitzero"`
	// apiServer is the API server's host:port as kubelets reach it.
	// +kubebuilder:validation:MaxLength=260
	// +optional
	APIServer string `json:"apiServer,omitempty"`
	// cloud whose metadata addresses are reached directly. When absent it is discovered from the
	// nodes' provider IDs; None says there is none.
	// +optional
	Cloud Cloud `json:"cloud,omitempty"`
}

// Cloud is a cloud provider.
// +kubebuilder:validation:Enum=None;AWS;Azure;GCP;OpenStack
type Cloud string

// The clouds.
const (
	CloudNone      Cloud = "None"
	CloudAWS       Cloud = "AWS"
	CloudAzure     Cloud = "Azure"
	CloudGCP       Cloud = "GCP"
	CloudOpenStack Cloud = "OpenStack"
)

// Registries are the registries a node pulls from.
type Registries struct {
	// internal registries are host or host:port, exactly as images name them. Each is in NO_PROXY
	// of every runtime. It cannot be discovered, so a profile that targets a runtime must say it;
	// [] says there are none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +optional
	// +kubebuilder:validation:items:MaxLength=260
	Internal []string `json:"internal,omitzero"`
}

// Target is a daemon that Proxyward configures.
// +kubebuilder:validation:Enum=Containerd;CRIO;Docker;Kubelet;K3s;RKE2;System
type Target string

// The targets.
const (
	TargetContainerd Target = "Containerd"
	TargetCRIO       Target = "CRIO"
	TargetDocker     Target = "Docker"
	TargetKubelet    Target = "Kubelet"
	TargetK3s        Target = "K3s"
	TargetRKE2       Target = "RKE2"
	TargetSystem     Target = "System"
)

// Canary names the images that prove a node.
type Canary struct {
	// internal is pulled without the proxy.
	// +optional
	Internal *CanaryImage `json:"internal,omitempty"`
	// external is pulled through the proxy. Absent in a closed network.
	// +optional
	External *CanaryImage `json:"external,omitempty"`
	// timeout of one pull.
	// +kubebuilder:default="60s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// recheckInterval between proofs of a node that is done. It is jittered; a recheck reports
	// and never undoes.
	// +kubebuilder:default="6h"
	// +optional
	RecheckInterval *metav1.Duration `json:"recheckInterval,omitempty"`
}

// CanaryImage is one image that is pulled and never run.
type CanaryImage struct {
	// image with its registry and its tag or digest. Its layer should be shared with no other
	// image and be at least 1 MiB of incompressible bytes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`
	// pullSecretName names a Secret of type kubernetes.io/dockerconfigjson in Proxyward's
	// namespace.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PullSecretName string `json:"pullSecretName,omitempty"`
}

// DriftPolicy says what is done about drift that needs no restart.
// +kubebuilder:validation:Enum=Repair;Report
type DriftPolicy string

// The drift policies.
const (
	DriftRepair DriftPolicy = "Repair"
	DriftReport DriftPolicy = "Report"
)

// Rollout bounds how a change moves over the nodes.
type Rollout struct {
	// maxUnavailable nodes of the profile at once: a number of at least 1, or a percentage from
	// 1% to 100%, rounded down and at least 1.
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// firstNodes go first, alone.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	FirstNodes *int32 `json:"firstNodes,omitempty"`
	// soak is the quiet time after the first nodes.
	// +kubebuilder:default="2m"
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`
	// maxFailures is the number of failed nodes at which the rollout halts.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxFailures *int32 `json:"maxFailures,omitempty"`
	// drain says when a node is drained before a restart. Auto drains only where the restart
	// would end containers.
	// +kubebuilder:default=Auto
	// +optional
	Drain DrainPolicy `json:"drain,omitempty"`
	// drainTimeout after which the cordon is lifted and the node is reported.
	// +kubebuilder:default="10m"
	// +optional
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// windows in which a node may start. Absent: at any time.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Windows []Window `json:"windows,omitempty"`
	// paused rollouts compute and show plans and start nothing: the dry run.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// DrainPolicy says when a node is drained.
// +kubebuilder:validation:Enum=Auto;Never;Always
type DrainPolicy string

// The drain policies.
const (
	DrainAuto   DrainPolicy = "Auto"
	DrainNever  DrainPolicy = "Never"
	DrainAlways DrainPolicy = "Always"
)

// Window is a recurring time in which nodes may start.
type Window struct {
	// days on which it opens; absent: every day.
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	// +optional
	Days []Day `json:"days,omitempty"`
	// start is the local time at which it opens, HH:MM.
	// +kubebuilder:validation:MaxLength=5
	Start string `json:"start"`
	// duration for which it stays open, more than 0 and at most 24h.
	Duration metav1.Duration `json:"duration"`
	// timeZone is an IANA name.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// Day of the week.
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string

// The days of the week.
const (
	Monday    Day = "Mon"
	Tuesday   Day = "Tue"
	Wednesday Day = "Wed"
	Thursday  Day = "Thu"
	Friday    Day = "Fri"
	Saturday  Day = "Sat"
	Sunday    Day = "Sun"
)

// ProxyProfileStatus is written by the controller.
type ProxyProfileStatus struct {
	// observedGeneration is the generation the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// revision is the ProxyRevision that the profile resolved to.
	// +optional
	Revision string `json:"revision,omitempty"`
	// facts as pinned when they were first discovered.
	// +optional
	Facts *PinnedFacts `json:"facts,omitempty"`
	// nodes counts the selected nodes by where they stand.
	// +optional
	Nodes NodeCounts `json:"nodes,omitempty"`
	// conditions: Resolved, Progressing, Ready, Halted, FactsChanged, Conflict.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PinnedFacts are the discovered facts that revisions are made from until a person accepts others.
type PinnedFacts struct {
	ClusterFacts `json:",inline"`
	// apiServerAddresses outside the node CIDRs.
	// +optional
	APIServerAddresses []string `json:"apiServerAddresses,omitempty"`
	// pinnedAt is when they were first resolved or last accepted.
	// +optional
	PinnedAt metav1.Time `json:"pinnedAt,omitempty"`
}

// NodeCounts counts nodes.
type NodeCounts struct {
	// selected by the profile.
	Selected int32 `json:"selected"`
	// done: in sync and verified at the current revision.
	Done int32 `json:"done"`
	// working on it now.
	Working int32 `json:"working"`
	// failed at the current revision.
	Failed int32 `json:"failed"`
	// waiting for a slot, a window or a decision.
	Waiting int32 `json:"waiting"`
	// silent nodes, whose agent does not report.
	Silent int32 `json:"silent"`
}
