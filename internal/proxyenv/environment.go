package proxyenv

import (
	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Var is one assignment of the effective environment. Its value may carry credentials, so it is a
// Secret.
type Var struct {
	Name  string
	Value Secret
}

// Environment is what one daemon's process must have: Vars present with exactly these values and
// Unset absent. Every variable that Proxyward owns is in one of the two. Both are sorted by name.
type Environment struct {
	Vars  []Var
	Unset []string
	// Entries of NO_PROXY with their provenance, in the order in which they stand in it.
	Entries []v1alpha1.NoProxyEntry
	// NodeDigest is the SHA-256 of the node's own entries, or "" when there are none. It stands
	// beside the revision, which every node shares.
	NodeDigest string
}

// NodeInput is what makes a revision one node's environment.
type NodeInput struct {
	Revision *v1alpha1.ProxyRevisionSpec
	// Credentials for the proxy; nil when the revision names none.
	Credentials *Credentials
	// Mirrors are host[:port] of the mirrors configured on this node, private or not.
	Mirrors []string
}
