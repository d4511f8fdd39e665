package decide

import (
	"github.com/proxyward/proxyward/api/v1alpha1"
)

// finish says where every node and profile stands, and lets go of nodes that are clean.
func (d *decider) finish() {
	for _, m := range d.ordered {
		report := d.nodeReport(m)
		d.out.Nodes[m.node.Name] = report
		counts := &d.reports[m.profile.Name].Counts
		switch report.State {
		case Done:
			counts.Done++
		case Working:
			counts.Working++
		case Failed:
			counts.Failed++
		case Silent:
			counts.Silent++
		default:
			counts.Waiting++
		}
		_, taken := d.out.Ledger.Claims[m.node.Name]
		if !taken && m.node.CordonedFor == "" && m.target.Desired == v1alpha1.DesiredAbsent && atTarget(m.node.Proxy, m.target) {
			d.step(Step{Kind: Forget, Node: m.node.Name, Profile: m.profile.Name})
		}
	}
	for name, r := range d.reports {
		r.Hold = d.holds[name].all
		d.out.Profiles[name] = *r
	}
}

func (d *decider) nodeReport(m *member) NodeReport {
	report := NodeReport{Profile: m.profile.Name}
	_, taken := d.out.Ledger.Claims[m.node.Name]
	np := m.node.Proxy
	switch {
	case !m.node.SilentSince.IsZero():
		report.State, report.Reason = Silent, "its agent does not answer"
	case np != nil && m.key != "" && atTarget(np, m.target) && !taken:
		report.State = Done
	case np != nil && m.key != "" && failedAt(np, m.key):
		report.State, report.Reason = Failed, np.Status.Message
	case taken:
		report.State = Working
	default:
		report.State, report.Reason = Waiting, d.waitingFor(m)
	}
	return report
}

func (d *decider) waitingFor(m *member) string {
	if why := d.candidate(m); why != "" {
		return why
	}
	if why := d.gate(m); why != "" {
		return why
	}
	return d.slotFor(m)
}
