package decide

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

const unit = "containerd.service"

// cluster is a model of nodes with their agents, which carries out what Decide says.
type cluster struct {
	t       *testing.T
	rand    *rand.Rand
	now     time.Time
	profile Profile
	nodes   []Node
	ledger  Ledger
	// admins are the nodes that somebody else cordoned, and when that ends.
	admins map[string]time.Time
	// fails says which nodes roll the revision back.
	fails map[string]bool
	// approvals in their order, and the most nodes that were unavailable right after one.
	approvals []string
	worst     int
}

func newCluster(t *testing.T, seed uint64, size int) *cluster {
	t.Helper()
	share := intstr.FromString("10%")
	failures, firsts := int32(1000), int32(1)
	spec := &v1alpha1.ProxyProfileSpec{Rollout: v1alpha1.Rollout{
		MaxUnavailable: &share, MaxFailures: &failures, FirstNodes: &firsts, Soak: &metav1.Duration{Duration: 2 * time.Minute},
		Drain: v1alpha1.DrainAuto, DrainTimeout: &metav1.Duration{Duration: 10 * time.Minute},
	}}
	c := &cluster{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), now: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC),
		profile: Profile{Name: "corp", Selector: labels.Everything(), Spec: spec, Revision: "corp-1", CredentialsVersion: "secret/1"},
		admins:  map[string]time.Time{}, fails: map[string]bool{},
	}
	for i := range size {
		c.nodes = append(c.nodes, Node{
			Name: fmt.Sprintf("node-%03d", i), Zone: fmt.Sprintf("zone-%d", i%3), Created: c.now.Add(-24 * time.Hour),
			Ready: true, AgentReady: true, Occupied: true,
		})
	}
	return c
}

func (c *cluster) node(name string) *Node {
	for i := range c.nodes {
		if c.nodes[i].Name == name {
			return &c.nodes[i]
		}
	}
	c.t.Fatalf("there is no node %q", name)
	return nil
}

// out says that a node is out of service, by the model's own reckoning.
func (c *cluster) out(n *Node) bool { return !n.Ready || n.Unschedulable || c.inHand(n) }

func (c *cluster) inHand(n *Node) bool {
	if n.Proxy == nil {
		return false
	}
	switch n.Proxy.Status.Phase {
	case v1alpha1.PhaseApplying, v1alpha1.PhaseProving:
		return true
	}
	a := n.Proxy.Spec.Approval
	return a != nil && n.Proxy.Status.Attempt != a.Attempt
}

func (c *cluster) count(is func(*Node) bool) int {
	count := 0
	for i := range c.nodes {
		if is(&c.nodes[i]) {
			count++
		}
	}
	return count
}

// decide asks once and carries out every step.
func (c *cluster) decide() Outcome {
	out := Decide(Input{Now: c.now, Profiles: []Profile{c.profile}, Nodes: c.nodes, Ledger: c.ledger})
	c.ledger = out.Ledger
	for _, s := range out.Steps {
		n := c.node(s.Node)
		switch s.Kind {
		case Assign:
			c.assign(n, s)
		case Cordon:
			n.Unschedulable, n.CordonedFor = true, s.Attempt
		case Uncordon:
			if n.CordonedFor == "" {
				c.t.Fatalf("%s: a cordon of somebody else is lifted", n.Name)
			}
			n.Unschedulable, n.CordonedFor = false, ""
		case Approve, Drain:
			if s.Spec.Approval != nil {
				c.approve(n, s, out)
			}
		case Forget:
			n.Proxy = nil
		}
	}
	return out
}

func (c *cluster) assign(n *Node, s Step) {
	if n.Proxy == nil {
		n.Proxy = &v1alpha1.NodeProxy{}
	}
	n.Proxy = n.Proxy.DeepCopy()
	n.Proxy.Spec = s.Spec
	n.Proxy.Generation++
}

// approve writes an approval and holds it against the promise: none while the occupancy has
// reached the cap.
func (c *cluster) approve(n *Node, s Step, out Outcome) {
	limit := out.Profiles["corp"].Cap
	others := c.count(func(o *Node) bool { return o != n && c.out(o) })
	inHand := c.count(func(o *Node) bool { return o != n && c.inHand(o) })
	unavailableAnyhow := !n.Ready
	if !unavailableAnyhow && others >= limit || inHand >= limit {
		c.t.Fatalf("%s: %s is approved while %d other nodes are out, %d of them in hand, and the cap is %d", c.now, n.Name, others, inHand, limit)
	}
	if n.Unschedulable && n.CordonedFor == "" {
		c.t.Fatalf("%s is approved although somebody else cordoned it", n.Name)
	}
	n.Proxy = n.Proxy.DeepCopy()
	n.Proxy.Spec = s.Spec
	n.Proxy.Generation++
	c.approvals = append(c.approvals, n.Name)
	c.worst = max(c.worst, c.count(c.inHand))
}

// tick lets ten seconds pass, and each agent take its next step.
func (c *cluster) tick() {
	c.now = c.now.Add(10 * time.Second)
	for i := range c.nodes {
		n := &c.nodes[i]
		if until, cordoned := c.admins[n.Name]; cordoned && c.now.After(until) {
			n.Unschedulable = false
			delete(c.admins, n.Name)
		}
		if n.Proxy != nil && n.AgentReady {
			n.Proxy = n.Proxy.DeepCopy()
			c.agent(n)
		}
	}
}

func (c *cluster) agent(n *Node) {
	np := n.Proxy
	s, a := &np.Status, np.Spec.Approval
	switch {
	case s.Phase == v1alpha1.PhaseApplying:
		if c.fails[n.Name] {
			s.Phase, s.Message = v1alpha1.PhaseRolledBack, "the external canary was not pulled"
			return
		}
		s.Phase, s.Plan = v1alpha1.PhaseDone, nil
		s.Revision, s.CredentialsVersion, s.LastKnownGood = np.Spec.Revision, np.Spec.CredentialsVersion, np.Spec.Revision
		s.Units = []v1alpha1.UnitStatus{{Name: unit, InvocationID: fmt.Sprintf("invocation-%d", c.rand.Uint64())}}
	case a != nil && a.Attempt != s.Attempt && s.Plan != nil && a.PlanHash == s.Plan.Hash:
		s.Attempt, s.Phase = a.Attempt, v1alpha1.PhaseApplying
	case s.ObservedGeneration != np.Generation && s.Phase != v1alpha1.PhaseRolledBack && s.Revision != np.Spec.Revision:
		s.Phase, s.BootID = v1alpha1.PhasePlanned, "boot-1"
		s.Plan = &v1alpha1.PlanStatus{Hash: "plan-of-" + np.Spec.Revision, Restarts: []string{unit}}
		s.Units = []v1alpha1.UnitStatus{{Name: unit, InvocationID: "invocation-1"}}
	}
	s.ObservedGeneration = np.Generation
}

// disturb does at random what happens to clusters.
func (c *cluster) disturb() {
	n := &c.nodes[c.rand.IntN(len(c.nodes))]
	switch c.rand.IntN(12) {
	case 0:
		if !n.Unschedulable {
			n.Unschedulable = true
			c.admins[n.Name] = c.now.Add(time.Duration(1+c.rand.IntN(10)) * time.Minute)
		}
	case 1:
		n.Ready, n.NotReadySince = false, c.now
	default:
		n.Ready, n.NotReadySince = true, time.Time{}
	}
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED=%q: %v", text, err)
		}
	}
	t.Logf("SEED=%d repeats this run", seed)
	return seed
}

// TestC39_DisturbedRolloutsKeepTheirBudgetAndEnd rolls a change over 200 nodes while nodes go, come
// back and are cordoned by others; the controller forgets everything but the ledger between two
// decisions, and sometimes the ledger too.
func TestC39_DisturbedRolloutsKeepTheirBudgetAndEnd(t *testing.T) {
	seed := seedOf(t)
	for round := range uint64(2) {
		c := newCluster(t, seed+round, 200)
		for range 8 {
			c.fails[c.nodes[c.rand.IntN(len(c.nodes))].Name] = true
		}
		const limit = 1500
		var out Outcome
		for i := range limit {
			out = c.decide()
			if c.rand.IntN(3) == 0 && i < limit/2 {
				c.disturb()
			}
			if c.rand.IntN(50) == 0 {
				c.ledger = Ledger{}
			}
			c.tick()
			if i == limit/2 { // from here on nothing disturbs it
				for j := range c.nodes {
					c.nodes[j].Ready, c.nodes[j].NotReadySince = true, time.Time{}
				}
			}
		}
		counts := out.Profiles["corp"].Counts
		if int(counts.Done)+int(counts.Failed) != len(c.nodes) || int(counts.Failed) != len(c.fails) {
			t.Errorf("round %d ends with %+v, of 200 nodes %d were to fail", round, counts, len(c.fails))
		}
		if c.worst < 2 {
			t.Errorf("round %d: never more than %d node in hand, so the budget was not tried", round, c.worst)
		}
	}
}

// quiet runs an undisturbed rollout for a while.
func (c *cluster) quiet(ticks int) Outcome {
	var out Outcome
	for range ticks {
		out = c.decide()
		c.tick()
	}
	return out
}

func TestFirstNodesGoAloneAndSoak(t *testing.T) {
	c := newCluster(t, 1, 40)
	c.quiet(4)
	if len(c.approvals) != 1 {
		t.Fatalf("%d nodes were approved before the first one was done", len(c.approvals))
	}
	c.quiet(10) // less than the soak
	if len(c.approvals) != 1 {
		t.Errorf("%d nodes were approved during the soak", len(c.approvals))
	}
	if out := c.quiet(200); out.Profiles["corp"].Counts.Done != 40 {
		t.Errorf("it ends with %+v", out.Profiles["corp"].Counts)
	}
	if c.worst != 4 {
		t.Errorf("at most %d nodes were in hand, 10%% of 40 are 4", c.worst)
	}
}

func TestC31_FailureHaltsAndOthersStayUntouched(t *testing.T) {
	c := newCluster(t, 1, 20)
	one := int32(1)
	c.profile.Spec.Rollout.MaxFailures = &one
	c.fails["node-000"] = true
	out := c.quiet(200)
	if r := out.Profiles["corp"]; !r.Halted || len(c.approvals) != 1 || r.Counts.Failed != 1 {
		t.Errorf("halted %t after %d approvals: %+v", r.Halted, len(c.approvals), r.Counts)
	}
	c.fails = map[string]bool{}
	c.profile.Revision = "corp-2"
	for i := range c.nodes { // what the agents do with a new assignment after an undo
		np := c.nodes[i].Proxy.DeepCopy()
		if np.Status.Phase == v1alpha1.PhaseRolledBack {
			np.Status.Phase = v1alpha1.PhaseIdle
		}
		c.nodes[i].Proxy = np
	}
	if out := c.quiet(400); out.Profiles["corp"].Counts.Done != 20 {
		t.Errorf("a new revision does not resume: %+v, held by %q", out.Profiles["corp"].Counts, out.Profiles["corp"].Hold)
	}
}

func TestPausedIsADryRun(t *testing.T) {
	c := newCluster(t, 1, 10)
	c.profile.Spec.Rollout.Paused = true
	out := c.quiet(50)
	if len(c.approvals) != 0 || out.Profiles["corp"].Hold != "paused" {
		t.Errorf("%d approvals, hold %q", len(c.approvals), out.Profiles["corp"].Hold)
	}
	if planned := c.count(func(n *Node) bool { return n.Proxy != nil && n.Proxy.Status.Plan != nil }); planned != 10 {
		t.Errorf("%d nodes show their plan, want 10", planned)
	}
}

func TestC60_ControlPlane(t *testing.T) {
	for policy, want := range map[v1alpha1.ControlPlanePolicy]int{v1alpha1.ControlPlaneExclude: 6, v1alpha1.ControlPlaneLast: 9} {
		t.Run(string(policy), func(t *testing.T) {
			c := newCluster(t, 1, 9)
			c.profile.Spec.ControlPlane = policy
			for i := range 3 {
				c.nodes[i].ControlPlane = true
			}
			all := intstr.FromString("100%")
			c.profile.Spec.Rollout.MaxUnavailable = &all
			most := 0
			for range 300 {
				c.decide()
				most = max(most, c.count(func(n *Node) bool { return n.ControlPlane && c.inHand(n) }))
				c.tick()
			}
			if len(c.approvals) != want {
				t.Fatalf("%d nodes were approved, want %d: %v", len(c.approvals), want, c.approvals)
			}
			if want == 9 && (most != 1 || c.node(c.approvals[5]).ControlPlane) {
				t.Errorf("%d of the control plane at once, order %v", most, c.approvals)
			}
		})
	}
}

func TestC34_CordonedByAnAdminIsSkippedAndCounted(t *testing.T) {
	c := newCluster(t, 1, 10) // the cap is 1
	c.nodes[3].Unschedulable = true
	out := c.quiet(60)
	if len(c.approvals) != 0 || out.Profiles["corp"].Occupancy != 1 {
		t.Errorf("%d approvals with the only slot taken by a cordon, occupancy %d", len(c.approvals), out.Profiles["corp"].Occupancy)
	}
	if why := out.Nodes["node-003"].Reason; why != "cordoned by somebody else" {
		t.Errorf("the node waits because %q", why)
	}
	c.nodes[3].Unschedulable = false
	if out := c.quiet(200); out.Profiles["corp"].Counts.Done != 10 {
		t.Errorf("it ends with %+v", out.Profiles["corp"].Counts)
	}
}

func TestProfileConflictLeavesTheNodeAlone(t *testing.T) {
	c := newCluster(t, 1, 2)
	other := c.profile
	other.Name = "other"
	out := Decide(Input{Now: c.now, Profiles: []Profile{c.profile, other}, Nodes: c.nodes})
	if len(out.Steps) != 0 || len(out.Conflicts) != 2 || len(out.Profiles["other"].Conflicts) != 2 {
		t.Errorf("steps %v, conflicts %v", out.Steps, out.Conflicts)
	}
}
