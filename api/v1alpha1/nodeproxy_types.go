package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeProxy is one node's assignment (spec, written by the controller) and its report (status,
// written by that node's agent). It has the node's name and is owned by it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=np,categories=proxyward
// +kubebuilder:printcolumn:name=Profile,type=string,JSONPath=`.spec.profile`
// +kubebuilder:printcolumn:name=Desired,type=string,JSONPath=`.spec.desired`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name=Message,type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type NodeProxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeProxySpec   `json:"spec,omitempty"`
	Status NodeProxyStatus `json:"status,omitempty"`
}

// NodeProxyList is a list of NodeProxies.
//
// +kubebuilder:object:root=true
type NodeProxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeProxy `json:"items"`
}

// NodeProxySpec is the controller's word to one agent. An absent spec commands nothing.
type NodeProxySpec struct {
	// desired state. Only Absent removes anything.
	// +optional
	Desired DesiredState `json:"desired,omitempty"`
	// profile that selects the node.
	// +optional
	Profile string `json:"profile,omitempty"`
	// revision is the name of the ProxyRevision.
	// +optional
	Revision string `json:"revision,omitempty"`
	// credentialsVersion is <UID>/<resourceVersion> of the credentials Secret.
	// +optional
	CredentialsVersion string `json:"credentialsVersion,omitempty"`
	// approval to execute one plan once.
	// +optional
	Approval *Approval `json:"approval,omitempty"`
}

// DesiredState of a node.
// +kubebuilder:validation:Enum=Present;Absent
type DesiredState string

// The desired states.
const (
	DesiredPresent DesiredState = "Present"
	DesiredAbsent  DesiredState = "Absent"
)

// Approval allows one execution of one plan, on one boot and against one running daemon.
type Approval struct {
	// planHash of the plan that the agent published.
	PlanHash string `json:"planHash"`
	// attempt is unique to this approval.
	Attempt string `json:"attempt"`
	// bootID of the node when the plan was published.
	BootID string `json:"bootID"`
	// invocations are the InvocationIDs of the units that the plan restarts, by unit.
	// +optional
	Invocations map[string]string `json:"invocations,omitempty"`
}

// Phase says where a node stands.
// +kubebuilder:validation:Enum=Idle;Planned;Applying;Proving;Done;Failed;RolledBack;Interrupted;Frozen;Removed
type Phase string

// The phases.
const (
	PhaseIdle        Phase = "Idle"
	PhasePlanned     Phase = "Planned"
	PhaseApplying    Phase = "Applying"
	PhaseProving     Phase = "Proving"
	PhaseDone        Phase = "Done"
	PhaseFailed      Phase = "Failed"
	PhaseRolledBack  Phase = "RolledBack"
	PhaseInterrupted Phase = "Interrupted"
	PhaseFrozen      Phase = "Frozen"
	PhaseRemoved     Phase = "Removed"
)

// NodeProxyStatus is written by the node's agent.
type NodeProxyStatus struct {
	// observedGeneration of the spec that the status answers.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase of the node.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// message for a person: what happened and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// revision and credentialsVersion that the running daemons have.
	// +optional
	Revision string `json:"revision,omitempty"`
	// +optional
	CredentialsVersion string `json:"credentialsVersion,omitempty"`
	// bootID of the running boot.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// attempt last consumed.
	// +optional
	Attempt string `json:"attempt,omitempty"`
	// agentVersion that wrote this.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// plan to reach the desired state; absent when there is nothing to do.
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`
	// units by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	Units []UnitStatus `json:"units,omitempty"`
	// canaries and their evidence.
	// +listType=map
	// +listMapKey=role
	// +optional
	Canaries []CanaryEvidence `json:"canaries,omitempty"`
	// lastKnownGood is the revision that was last proven here.
	// +optional
	LastKnownGood string `json:"lastKnownGood,omitempty"`
}

// PlanStatus is a plan as it is published.
type PlanStatus struct {
	// hash of the desired non-secret files, the credentials version and the ordered actions.
	Hash string `json:"hash"`
	// actions in order, for a person.
	// +listType=atomic
	// +optional
	Actions []string `json:"actions,omitempty"`
	// restarts lists the units that it restarts.
	// +listType=set
	// +optional
	Restarts []string `json:"restarts,omitempty"`
	// killsContainers says that a restart would end running containers.
	// +optional
	KillsContainers bool `json:"killsContainers,omitempty"`
	// diff of the files with secrets masked, at most 8 KiB.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Diff string `json:"diff,omitempty"`
	// refused says why the plan cannot be executed.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// UnitStatus is what was observed of one unit.
type UnitStatus struct {
	// name of the unit, with its suffix.
	Name string `json:"name"`
	// target that it belongs to.
	Target Target `json:"target"`
	// state as systemd says (active, inactive, failed, …).
	// +optional
	State string `json:"state,omitempty"`
	// invocationID of the running daemon.
	// +optional
	InvocationID string `json:"invocationID,omitempty"`
	// inSync: True, False or Unknown.
	InSync metav1.ConditionStatus `json:"inSync"`
	// findings, at most 16.
	// +listType=atomic
	// +optional
	Findings []Finding `json:"findings,omitempty"`
}

// Finding is one thing that is not as it should be.
type Finding struct {
	// reason is one of the reasons of RuntimeProxyInSync.
	Reason string `json:"reason"`
	// path of the file, or the key, that it is about.
	// +optional
	Path string `json:"path,omitempty"`
	// message says what was found and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// CanaryRole is internal or external.
// +kubebuilder:validation:Enum=Internal;External
type CanaryRole string

// The canary roles.
const (
	CanaryInternal CanaryRole = "Internal"
	CanaryExternal CanaryRole = "External"
)

// Route is the way that bytes went.
// +kubebuilder:validation:Enum=Direct;Proxy;Mirror;Unknown
type Route string

// The routes.
const (
	RouteDirect  Route = "Direct"
	RouteProxy   Route = "Proxy"
	RouteMirror  Route = "Mirror"
	RouteUnknown Route = "Unknown"
)

// Verdict of a canary.
// +kubebuilder:validation:Enum=Verified;Failed;WrongRoute;Inconclusive;NeverRun
type Verdict string

// The verdicts.
const (
	VerdictVerified     Verdict = "Verified"
	VerdictFailed       Verdict = "Failed"
	VerdictWrongRoute   Verdict = "WrongRoute"
	VerdictInconclusive Verdict = "Inconclusive"
	VerdictNeverRun     Verdict = "NeverRun"
)

// CanaryEvidence is what one pull showed.
type CanaryEvidence struct {
	// role of the image.
	Role CanaryRole `json:"role"`
	// target whose daemon pulled it.
	// +optional
	Target Target `json:"target,omitempty"`
	// image as asked for.
	Image string `json:"image"`
	// verdict.
	Verdict Verdict `json:"verdict"`
	// digest of the image that arrived.
	// +optional
	Digest string `json:"digest,omitempty"`
	// bytes that arrived in layers.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// bytesJudgedBy says how arrival was judged (content store, socket counters), or that it is unknown.
	// +optional
	BytesJudgedBy string `json:"bytesJudgedBy,omitempty"`
	// route that the bytes took, and the one that was expected.
	// +optional
	Route Route `json:"route,omitempty"`
	// +optional
	ExpectedRoute Route `json:"expectedRoute,omitempty"`
	// remote address:port that the bytes came from.
	// +optional
	Remote string `json:"remote,omitempty"`
	// duration of the pull.
	// +optional
	Duration metav1.Duration `json:"duration,omitempty"`
	// time at which it ended.
	// +optional
	Time metav1.Time `json:"time,omitempty"`
	// message says what failed and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}
