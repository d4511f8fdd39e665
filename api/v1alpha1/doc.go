// Package v1alpha1 holds the Proxyward API: ProxyProfile (what a person asks for), ProxyRevision
// (what a profile was resolved to) and NodeProxy (one node's assignment and its report), together
// with the condition types, reasons, names and admission rules that go with them.
//
// It imports apimachinery and nothing else, so any program may depend on it.
//
// +kubebuilder:object:generate=true
// +groupName=proxyward.dev
package v1alpha1
