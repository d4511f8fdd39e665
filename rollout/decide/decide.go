package decide

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// decider holds what one decision works on.
type decider struct {
	in        Input
	now       time.Time
	out       Outcome
	profiles  map[string]*Profile
	nodes     map[string]*Node
	members   map[string]*member
	byProfile map[string][]*member
	// ordered are all members by name.
	ordered []*member
	reports map[string]*ProfileReport
	holds   map[string]hold
}

// Decide says what to do next. It changes nothing that it is given.
func Decide(in Input) Outcome {
	d := &decider{
		in: in, now: in.Now,
		profiles: map[string]*Profile{}, nodes: map[string]*Node{}, members: map[string]*member{},
		byProfile: map[string][]*member{}, reports: map[string]*ProfileReport{}, holds: map[string]hold{},
		out: Outcome{
			Ledger:   copyLedger(in.Ledger),
			Profiles: map[string]ProfileReport{}, Nodes: map[string]NodeReport{}, Conflicts: map[string][]string{},
		},
	}
	for i := range in.Profiles {
		d.profiles[in.Profiles[i].Name] = &in.Profiles[i]
		d.reports[in.Profiles[i].Name] = &ProfileReport{Conflicts: map[string][]string{}}
	}
	d.assignMembers()
	d.ordered = slices.SortedFunc(maps.Values(d.members), func(a, b *member) int { return strings.Compare(a.node.Name, b.node.Name) })
	d.prune()
	d.adopt()
	d.survey()
	d.assign()
	d.settle()
	d.start()
	d.finish()
	return d.out
}

func copyLedger(l Ledger) Ledger {
	c := Ledger{Claims: maps.Clone(l.Claims), Progress: maps.Clone(l.Progress), Deferred: maps.Clone(l.Deferred)}
	if c.Claims == nil {
		c.Claims = map[string]Claim{}
	}
	if c.Progress == nil {
		c.Progress = map[string]Progress{}
	}
	if c.Deferred == nil {
		c.Deferred = map[string]Deferral{}
	}
	return c
}

func (d *decider) report(profile string) *ProfileReport { return d.reports[profile] }

func (d *decider) step(s Step) { d.out.Steps = append(d.out.Steps, s) }

// at notes a time at which the answer may change by itself.
func (d *decider) at(t time.Time) {
	if t.After(d.now) && (d.out.Next.IsZero() || t.Before(d.out.Next)) {
		d.out.Next = t
	}
}

func (d *decider) setClaim(node string, c Claim) {
	if old, ok := d.out.Ledger.Claims[node]; !ok || old != c {
		d.out.Ledger.Claims[node] = c
		d.out.LedgerChanged = true
	}
}

func (d *decider) dropClaim(node string) {
	delete(d.out.Ledger.Claims, node)
	d.out.LedgerChanged = true
}

// prune drops what the ledger remembers of targets and profiles that are no more.
func (d *decider) prune() {
	l := &d.out.Ledger
	for name := range l.Progress {
		if d.profiles[name] == nil {
			delete(l.Progress, name)
			d.out.LedgerChanged = true
		}
	}
	for name, put := range l.Deferred {
		if m := d.members[name]; m == nil || m.key != put.Key || !put.Until.After(d.now) {
			delete(l.Deferred, name)
			d.out.LedgerChanged = true
		}
	}
}

// adopt gives a claim to every node that is in hand without one, as when the ledger was lost.
func (d *decider) adopt() {
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		n := d.nodes[name]
		if _, taken := d.out.Ledger.Claims[name]; taken || n.Proxy == nil || !outstanding(n.Proxy) {
			continue
		}
		c := Claim{Profile: n.Proxy.Spec.Profile, Attempt: n.Proxy.Status.Attempt, Since: d.now}
		if n.Proxy.Spec.Approval != nil {
			c.Attempt = n.Proxy.Spec.Approval.Attempt
		}
		d.setClaim(name, c)
	}
	// A mark of ours on a node without a claim is left from a controller that was killed.
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		if _, taken := d.out.Ledger.Claims[name]; !taken && d.nodes[name].CordonedFor != "" {
			d.step(Step{Kind: Uncordon, Node: name, Attempt: d.nodes[name].CordonedFor, Reason: "nothing is in hand on it"})
		}
	}
}

// survey finds each profile's cap, occupancy, failures and holds.
func (d *decider) survey() {
	for name, p := range d.profiles {
		r, done, present := d.reports[name], 0, 0
		for _, m := range d.byProfile[name] {
			m.unavailable = Unavailable(m.node, d.out.Ledger.Claims, d.now)
			if m.unavailable != "" {
				r.Occupancy++
			}
			if np := m.node.Proxy; np != nil && m.key != "" && failedAt(np, m.key) {
				r.FailedNodes = append(r.FailedNodes, m.node.Name)
			}
			if m.target.Desired != v1alpha1.DesiredPresent {
				continue
			}
			if !m.node.ControlPlane {
				present++
			}
			if m.node.Proxy != nil && atTarget(m.node.Proxy, m.target) {
				done++
			}
			if !m.node.Ready && !m.node.NotReadySince.IsZero() {
				d.at(m.node.NotReadySince.Add(SilentLimit))
			}
			if !m.node.SilentSince.IsZero() {
				d.at(m.node.SilentSince.Add(SilentLimit))
			}
		}
		slices.Sort(r.FailedNodes)
		d.holds[name] = d.holdOf(p, r, done, present)
	}
}
