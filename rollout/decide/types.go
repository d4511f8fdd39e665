package decide

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Input is the cluster as it was read.
type Input struct {
	Now      time.Time
	Profiles []Profile
	// Nodes of the whole cluster.
	Nodes  []Node
	Ledger Ledger
}

// Profile is one profile, with its defaults filled in.
type Profile struct {
	Name     string
	Selector labels.Selector
	Spec     *v1alpha1.ProxyProfileSpec
	// Deleting profiles select nothing: their nodes are to be cleaned.
	Deleting bool
	// Revision and CredentialsVersion that its nodes should have; Revision is empty when the
	// profile could not be resolved, and then nothing new starts.
	Revision, CredentialsVersion string
	// Retry is the value of the retry annotation.
	Retry string
}

// Node is one node with its NodeProxy.
type Node struct {
	Name         string
	UID          string
	Labels       map[string]string
	Zone         string
	ControlPlane bool
	// NotLinux nodes are unsupported.
	NotLinux bool
	Created  time.Time
	Ready    bool
	// NotReadySince is when Ready went, if it did.
	NotReadySince time.Time
	Unschedulable bool
	// CordonedFor is the attempt in our mark; empty when there is no mark of ours.
	CordonedFor string
	// AgentReady says that the agent's Pod is Ready.
	AgentReady bool
	// SilentSince is when the agent was last known to answer, or zero when it answers or its
	// silence is too young to matter.
	SilentSince time.Time
	// Occupied says that the node, which just joined, was seen to have pods of its own.
	Occupied bool
	// Proxy is the node's NodeProxy; nil when there is none that belongs to this very node.
	// It is read and never changed.
	Proxy *v1alpha1.NodeProxy
}

// Ledger is what the one guarded object holds.
type Ledger struct {
	// Claims by node.
	Claims map[string]Claim `json:"claims,omitempty"`
	// Progress by profile.
	Progress map[string]Progress `json:"progress,omitempty"`
	// Deferred nodes, by name.
	Deferred map[string]Deferral `json:"deferred,omitempty"`
}

// Claim is a slot that a node has.
type Claim struct {
	Profile string `json:"profile"`
	// Attempt that the slot was taken for.
	Attempt string    `json:"attempt"`
	Since   time.Time `json:"since"`
	// Fence is the NodeProxy's resourceVersion at which alone the approval may be written.
	Fence string `json:"fence"`
	// Joined claims of nodes that just joined are beside the budget.
	Joined bool `json:"joined,omitempty"`
	// Drain says that the node is cordoned and drained before it is approved.
	Drain bool `json:"drain,omitempty"`
}

// Progress of a profile towards one target.
type Progress struct {
	// Key of the target, as in attempts.
	Key string `json:"key"`
	// FirstDone is when the first nodes were done; zero before.
	FirstDone time.Time `json:"firstDone,omitzero"`
}

// Deferral keeps a node from being tried again at once.
type Deferral struct {
	// Key of the target it was tried for. Another target lifts the deferral.
	Key    string    `json:"key"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// Kind of a step.
type Kind string

// The kinds of steps.
const (
	// Assign writes what the node should have, and takes any approval back.
	Assign Kind = "Assign"
	// TakeSlot, in the ledger, gives the node a slot.
	TakeSlot Kind = "Claim"
	// Cordon marks the node unschedulable as ours.
	Cordon Kind = "Cordon"
	// Drain evicts the node's pods and, once none is left, approves.
	Drain Kind = "Drain"
	// Approve writes the approval.
	Approve Kind = "Approve"
	// Uncordon lifts our own cordon.
	Uncordon Kind = "Uncordon"
	// Fence makes any approval that somebody may still be about to write fail.
	Fence Kind = "Fence"
	// Release takes the node's slot back, in the ledger.
	Release Kind = "Release"
	// Forget deletes the NodeProxy of a clean node.
	Forget Kind = "Forget"
)

// Step is one thing to do. Steps are in the order in which they are to be done; those on the ledger
// are already in [Outcome.Ledger].
type Step struct {
	Kind    Kind
	Node    string
	Profile string
	// Spec to write: whole for Assign, with the approval for Drain and Approve.
	Spec v1alpha1.NodeProxySpec
	// Attempt of the claim, for Cordon, Drain, Approve.
	Attempt string
	// Empty says, for Drain, that the node must be found empty and nothing is evicted: it just
	// joined, and takes the ordinary way when it is not.
	Empty bool
	// Reason for a person, for Release and Uncordon.
	Reason string
	// Warn makes an Event of the reason.
	Warn bool
}

// State of a node within its profile.
type State string

// The states.
const (
	Done    State = "Done"
	Working State = "Working"
	Failed  State = "Failed"
	Waiting State = "Waiting"
	Silent  State = "Silent"
)

// NodeReport says where one node stands.
type NodeReport struct {
	Profile string
	State   State
	// Reason for a person, of the states Waiting, Failed and Silent.
	Reason string
}

// ProfileReport says where one profile stands.
type ProfileReport struct {
	Counts v1alpha1.NodeCounts
	// Cap on unavailable nodes, and how many there are.
	Cap, Occupancy int
	Halted         bool
	// FailedNodes in order of name.
	FailedNodes []string
	// Conflicts are the nodes that another profile selects too, by name, each with all profiles.
	Conflicts map[string][]string
	// Hold says why no further node starts; empty when nothing holds.
	Hold string
	// Members is the number of nodes that still have a NodeProxy of this profile or should.
	Members int
}

// Outcome is what [Decide] says.
type Outcome struct {
	Steps []Step
	// Ledger as it is to be once the steps are done.
	Ledger Ledger
	// LedgerChanged says that it differs from the one that was read.
	LedgerChanged bool
	Profiles      map[string]ProfileReport
	Nodes         map[string]NodeReport
	// Conflicts by node: the profiles that select it, when they are several.
	Conflicts map[string][]string
	// Next is when time alone may change the answer; zero for never.
	Next time.Time
}
