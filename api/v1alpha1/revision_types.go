package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProxyRevision is what a profile was resolved to. It never changes; its name carries the hash of
// its spec. It holds no secret.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pr,categories=proxyward
// +kubebuilder:printcolumn:name=Profile,type=string,JSONPath=`.spec.profile`
// +kubebuilder:printcolumn:name=HTTPS,type=string,JSONPath=`.spec.httpsProxy`
// +kubebuilder:printcolumn:name=HTTP,type=string,JSONPath=`.spec.httpProxy`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ProxyRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProxyRevisionSpec `json:"spec"`
}

// ProxyRevisionList is a list of ProxyRevisions.
//
// +kubebuilder:object:root=true
type ProxyRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProxyRevision `json:"items"`
}

// ProxyRevisionSpec is everything a node needs to know, except secrets and what is the node's own.
type ProxyRevisionSpec struct {
	// profile it was made from.
	Profile string `json:"profile"`
	// httpProxy for http:// URLs, without credentials.
	// +optional
	HTTPProxy string `json:"httpProxy,omitempty"`
	// httpsProxy for https:// URLs, without credentials.
	// +optional
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	// credentialsSecretName as in the profile.
	// +optional
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`
	// trustedCA with the digest of what it held when it was resolved.
	// +optional
	TrustedCA *ResolvedCA `json:"trustedCA,omitempty"`
	// noProxy entries, sorted by value, each with where it comes from.
	// +listType=atomic
	NoProxy []NoProxyEntry `json:"noProxy"`
	// excluded names computed entries that the profile leaves out; a node's own entries mind it too.
	// +listType=atomic
	// +optional
	Excluded []string `json:"excluded,omitempty"`
	// internalRegistries as the profile names them.
	// +listType=atomic
	// +optional
	InternalRegistries []string `json:"internalRegistries,omitempty"`
	// cluster facts it was resolved with.
	// +optional
	Cluster ClusterFacts `json:"cluster,omitempty"`
	// targets as in the profile; empty: the runtimes found.
	// +listType=atomic
	// +optional
	Targets []Target `json:"targets,omitempty"`
	// canary images.
	// +optional
	Canary Canary `json:"canary,omitempty"`
	// drift policy.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`
}

// ResolvedCA is a trusted CA by its digest.
type ResolvedCA struct {
	ConfigMapKey `json:",inline"`
	// sha256 of the PEM bytes, in lower-case hexadecimal.
	SHA256 string `json:"sha256"`
}

// NoProxyEntry is one NO_PROXY entry with its provenance.
type NoProxyEntry struct {
	// value as it stands in NO_PROXY.
	Value string `json:"value"`
	// source it comes from.
	Source EntrySource `json:"source"`
	// reason it is there.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// EntrySource says where a NO_PROXY entry comes from.
type EntrySource string

// The sources, in the order in which they win where several give the same value.
const (
	SourceLoopback EntrySource = "Loopback"
	SourceCluster  EntrySource = "Cluster"
	SourceCloud    EntrySource = "Cloud"
	SourceRegistry EntrySource = "Registry"
	SourceProfile  EntrySource = "Profile"
	SourceNode     EntrySource = "Node"
)
