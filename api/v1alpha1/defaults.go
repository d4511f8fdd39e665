package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SetDefaults fills the fields of a profile that are absent with what the API server would fill in,
// so that a profile read from a file means what the same profile means in a cluster.
func SetDefaults(p *ProxyProfile) {
	s := &p.Spec
	setDefault(&s.ControlPlane, ControlPlaneExclude)
	setDefault(&s.Drift, DriftRepair)
	if ca := s.Proxy.TrustedCA; ca != nil {
		setDefault(&ca.Key, "ca.crt")
	}
	setDefaultPtr(&s.Canary.Timeout, metav1.Duration{Duration: 60 * time.Second})
	setDefaultPtr(&s.Canary.RecheckInterval, metav1.Duration{Duration: 6 * time.Hour})
	r := &s.Rollout
	setDefaultPtr(&r.MaxUnavailable, intstr.FromString("10%"))
	setDefaultPtr(&r.FirstNodes, 1)
	setDefaultPtr(&r.Soak, metav1.Duration{Duration: 2 * time.Minute})
	setDefaultPtr(&r.MaxFailures, 1)
	setDefault(&r.Drain, DrainAuto)
	setDefaultPtr(&r.DrainTimeout, metav1.Duration{Duration: 10 * time.Minute})
	for i := range r.Windows {
		setDefault(&r.Windows[i].TimeZone, "UTC")
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setDefaultPtr[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
