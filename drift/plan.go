package drift

import (
	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/runtimes"
)

// Plan is what would have to be done, in order. An empty plan has no actions.
type Plan struct {
	// Hash covers the desired non-secret files, the credentials version and the ordered actions;
	// nothing of the clock nor of observed state but what the actions say.
	Hash    string
	Actions []Action
	Units   []UnitVerdict
	// Refused is not empty when the plan must not be executed, and says why.
	Refused string
}

// ActionKind is what an action does.
type ActionKind string

// The kinds of actions.
const (
	ActionWrite   ActionKind = "write"
	ActionRemove  ActionKind = "remove"
	ActionReload  ActionKind = "reload" // systemd's daemon-reload
	ActionRestart ActionKind = "restart"
)

// Action is one step.
type Action struct {
	Kind ActionKind
	// Unit that it is for; empty for a reload.
	Unit string
	// File to write (its path alone, to remove).
	File runtimes.File
	// Why it is needed, for a person.
	Why string
}

// UnitVerdict is what is thought of one unit.
type UnitVerdict struct {
	Unit   string
	Target v1alpha1.Target
	// InSync: the running daemon has exactly the desired environment and would have it after a
	// restart too.
	InSync runtimes.Tristate
	// Findings, those that break the sync first.
	Findings []v1alpha1.Finding
	// Restart is what a restart does to containers.
	Restart runtimes.RestartEffect
	State   string
	// InvocationID of the daemon that was observed.
	InvocationID string
}

// Restarts returns the units that the plan restarts, in order.
func (p Plan) Restarts() []string {
	var units []string
	for _, a := range p.Actions {
		if a.Kind == ActionRestart {
			units = append(units, a.Unit)
		}
	}
	return units
}
