package apply

import (
	"fmt"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Proof is what asking or proving showed. One without failures is good.
type Proof struct {
	Evidence []v1alpha1.CanaryEvidence
	Failures []Failure
}

// Failure is one thing that did not work. Subject, Kind and Hop are its identity: a failure with
// the same three before and after a change was not made by the change.
type Failure struct {
	// Subject is what was tried, such as the role and the target of a canary.
	Subject string `json:"subject"`
	// Kind of failure. Apart from the two below it is compared and not interpreted.
	Kind FailureKind `json:"kind"`
	// Hop is the host:port that failed, or "".
	Hop string `json:"hop,omitempty"`
	// Message for a person, without any secret.
	Message string `json:"message"`
}

// FailureKind tells failures apart.
type FailureKind string

// The kinds that choose an outcome.
const (
	// KindTransient says nothing of the proxy: the registry answered 429 or 5xx.
	KindTransient FailureKind = "Transient"
	// KindProxyAuth is the proxy's 407.
	KindProxyAuth FailureKind = "ProxyAuth"
)

// Error implements error.
func (f Failure) Error() string { return fmt.Sprintf("proving %s: %s", f.Subject, f.Message) }

func (f Failure) sameAs(other Failure) bool {
	return f.Subject == other.Subject && f.Kind == other.Kind && f.Hop == other.Hop
}

// caused returns the failures of a proof that the change made: neither transient nor there before.
func caused(baseline, after []Failure) []Failure {
	var out []Failure
	for _, f := range after {
		if f.Kind != KindTransient && !includes(baseline, f) {
			out = append(out, f)
		}
	}
	return out
}

func includes(list []Failure, f Failure) bool {
	for _, g := range list {
		if f.sameAs(g) {
			return true
		}
	}
	return false
}

// deadCredentials says that the old environment's password no longer opens the proxy.
func deadCredentials(baseline []Failure) bool {
	for _, f := range baseline {
		if f.Kind == KindProxyAuth {
			return true
		}
	}
	return false
}
