package v1alpha1

// Profile condition types, written by the controller.
const (
	// ConditionResolved is True when the profile and the facts give a revision.
	ConditionResolved = "Resolved"
	// ConditionProgressing is True while nodes are being brought to what is desired.
	ConditionProgressing = "Progressing"
	// ConditionReady is True when every selected node has what is desired.
	ConditionReady = "Ready"
	// ConditionHalted is True when maxFailures nodes failed; a new revision, new credentials or a
	// retry resumes.
	ConditionHalted = "Halted"
	// ConditionFactsChanged is True when the cluster no longer shows the facts that are pinned.
	ConditionFactsChanged = "FactsChanged"
	// ConditionConflict is True when another profile selects one of the nodes too.
	ConditionConflict = "Conflict"
)

// Annotations that a person, or the command-line program, puts on a profile.
const (
	// RetryAnnotation resumes a halted rollout whenever its value changes; a time does well.
	RetryAnnotation = "proxyward.dev/retry"
	// AcceptFactsAnnotation pins the facts that the cluster shows now, when its value is their
	// digest as the condition FactsChanged gives it.
	AcceptFactsAnnotation = "proxyward.dev/accept-facts"
)

// ControlPlaneLabels are the labels whose presence makes a node one of the control plane. The
// second is what kubeadm set before Kubernetes 1.24.
func ControlPlaneLabels() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}
