package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
