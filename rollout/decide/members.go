package decide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// member is a node of a profile, with what it should have.
type member struct {
	node    *Node
	profile *Profile
	target  v1alpha1.NodeProxySpec
	// key of the target; empty while the profile has none.
	key string
	// unavailable as [Unavailable] says.
	unavailable string
}

// Selects returns the names of the live profiles that select a node, sorted. Two of them are a
// conflict.
func Selects(profiles []Profile, n *Node) []string {
	var names []string
	for i := range profiles {
		p := &profiles[i]
		if p.Deleting || n.NotLinux || !p.Selector.Matches(labels.Set(n.Labels)) {
			continue
		}
		if n.ControlPlane && p.Spec.ControlPlane != v1alpha1.ControlPlaneLast {
			continue
		}
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// assignMembers finds each node's profile: the one that selects it, or the one it still has to be
// cleaned of. A node that several select belongs to none, and neither does one whose profile has
// vanished: absence commands nothing.
func (d *decider) assignMembers() {
	for i := range d.in.Nodes {
		n := &d.in.Nodes[i]
		d.nodes[n.Name] = n
		selecting := Selects(d.in.Profiles, n)
		var m *member
		switch {
		case len(selecting) > 1:
			d.out.Conflicts[n.Name] = selecting
			for _, name := range selecting {
				d.report(name).Conflicts[n.Name] = selecting
				d.report(name).Counts.Selected++
				d.report(name).Counts.Waiting++
			}
			d.out.Nodes[n.Name] = NodeReport{Profile: selecting[0], State: Waiting, Reason: "selected by the profiles " + strings.Join(selecting, ", ")}
			if n.Proxy != nil && d.profiles[n.Proxy.Spec.Profile] != nil {
				d.report(n.Proxy.Spec.Profile).Members++
			}
			continue
		case len(selecting) == 1:
			m = d.present(n, d.profiles[selecting[0]])
		case n.Proxy != nil && d.profiles[n.Proxy.Spec.Profile] != nil:
			m = d.absent(n, d.profiles[n.Proxy.Spec.Profile])
		default:
			continue
		}
		d.members[n.Name] = m
		d.byProfile[m.profile.Name] = append(d.byProfile[m.profile.Name], m)
		r := d.report(m.profile.Name)
		r.Members++
		r.Counts.Selected++
	}
}

func (d *decider) present(n *Node, p *Profile) *member {
	m := &member{node: n, profile: p}
	if p.Revision == "" {
		return m
	}
	m.target = v1alpha1.NodeProxySpec{
		Desired: v1alpha1.DesiredPresent, Profile: p.Name,
		Revision: p.Revision, CredentialsVersion: p.CredentialsVersion,
	}
	m.key = targetKey(m.target, p.Retry)
	return m
}

// absent keeps what the node was told last, for the agent to know what it removes.
func (d *decider) absent(n *Node, p *Profile) *member {
	target := n.Proxy.Spec
	target.Approval = nil
	target.Desired = v1alpha1.DesiredAbsent
	return &member{node: n, profile: p, target: target, key: targetKey(target, p.Retry)}
}

// assign emits what brings NodeProxies to their targets. It starts nothing.
func (d *decider) assign() {
	for _, m := range d.ordered {
		if m.key == "" || m.node.Proxy != nil && hasTarget(m.node.Proxy.Spec, m.target) {
			continue
		}
		d.step(Step{Kind: Assign, Node: m.node.Name, Profile: m.profile.Name, Spec: m.target})
	}
}
