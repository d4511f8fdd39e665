package applytest

import (
	"slices"
	"strings"
	"time"
)

// What the model says of every unit's limits.
const (
	unitTimeout      = 2 * time.Second
	startLimitWindow = 10 * time.Second
)

// Queue leaves a restart or start queued, as systemd has it when the caller was killed right after
// asking for it.
func (s *Systemd) Queue(name string) error {
	return s.change(func(st *modelState) error {
		unit, err := st.unit(name)
		if err == nil {
			unit.Job = "queued"
		}
		return err
	})
}

// Due leaves a unit for the boot to start, which it does not while anybody looks.
func (s *Systemd) Due(name string) error {
	return s.change(func(st *modelState) error {
		unit, err := st.unit(name)
		if err == nil {
			unit.Active, unit.Job = "inactive", jobDue
		}
		return err
	})
}

// SetActive puts a unit into a state by somebody else's hand.
func (s *Systemd) SetActive(name, active string) error {
	return s.change(func(st *modelState) error {
		unit, err := st.unit(name)
		if err == nil {
			unit.Active = active
		}
		return err
	})
}

// Reboot starts every unit that was not stopped, with what is on disk then, and the timers that
// are enabled.
func (s *Systemd) Reboot() error {
	return s.change(func(st *modelState) error {
		for name := range st.Units {
			if strings.HasSuffix(name, ".timer") {
				delete(st.Units, name)
			}
		}
		s.load(st)
		for name, unit := range st.Units {
			unit.Starts = 0
			if unit.Active == "inactive" && unit.Job == "" {
				continue
			}
			_ = s.run(st, name) // its failure shows in the state
		}
		for _, name := range st.Enabled {
			st.Units[name] = &modelUnit{Active: "active", Result: "success"}
		}
		return nil
	})
}

// Process is what runs of one unit.
type Process struct {
	Active, InvocationID string
	// Environ is what its environment files held when it was started.
	Environ string
	DropIns []string
	Starts  uint32
}

// Process returns what runs of a unit, the zero value when there is no such unit.
func (s *Systemd) Process(name string) (Process, error) {
	st, err := s.read()
	if err != nil || st.Units[name] == nil {
		return Process{}, err
	}
	u := st.Units[name]
	return Process{Active: u.Active, InvocationID: u.Invocation, Environ: u.Environ, DropIns: u.DropIns, Starts: u.Starts}, nil
}

// Enabled says that a unit is started at boot.
func (s *Systemd) Enabled(name string) (bool, error) {
	st, err := s.read()
	return slices.Contains(st.Enabled, name), err
}

// Outdated says that systemd needs a reload.
func (s *Systemd) Outdated() (bool, error) {
	st, err := s.read()
	return st.Outdated, err
}
