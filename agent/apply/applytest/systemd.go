package applytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/internal/systemd"
)

// Systemd is a model of systemd over a host's tree. Its state is a file, so it goes on when the
// process that used it is killed, as systemd does. One process uses it at a time.
//
// Words in a unit's environment files make its daemon misbehave: FAIL makes it exit at its start,
// HANG makes it never get ready.
type Systemd struct {
	// Root of the host's tree.
	Root string
	// File that holds the state, outside the tree.
	File string
	// Run is what starting a oneshot service does, by unit; its error fails the start.
	Run map[string]func(ctx context.Context, program string) error
	// ForeignStarts counts against the start limit of every unit.
	ForeignStarts uint32
	// StartLimitBurst of every unit; 0 is no limit.
	StartLimitBurst uint32
}

type modelState struct {
	Invocations int
	Units       map[string]*modelUnit
	Enabled     []string
	// Outdated is set by Enable and Disable, until a reload: systemd then calls every unit outdated.
	Outdated bool
}

type modelUnit struct {
	Active, Result, Invocation string
	// DropIns and EnvironmentFiles as loaded; Environ as the process got it.
	DropIns, EnvironmentFiles []string
	Environ                   string
	Starts                    uint32
	// Job is a restart or start that was queued when its caller was killed, or jobDue.
	Job string
}

// NewSystemd makes a model with these units running.
func NewSystemd(root, file string, units ...string) (*Systemd, error) {
	s := &Systemd{Root: root, File: file}
	st := modelState{Units: map[string]*modelUnit{}}
	for _, unit := range units {
		st.Units[unit] = &modelUnit{Active: "inactive", Result: "success"}
	}
	s.load(&st)
	for _, unit := range units {
		if err := s.run(&st, unit); err != nil {
			return nil, err
		}
	}
	return s, s.write(st)
}

func (s *Systemd) read() (modelState, error) {
	var st modelState
	data, err := os.ReadFile(s.File)
	if err != nil {
		return st, fmt.Errorf("reading the model of systemd: %w", err)
	}
	return st, json.Unmarshal(data, &st)
}

func (s *Systemd) write(st modelState) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	next := s.File + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.File)
}

// change reads the state, changes it and writes it, also when the change fails.
func (s *Systemd) change(do func(st *modelState) error) error {
	st, err := s.read()
	if err != nil {
		return err
	}
	failure := do(&st)
	return errors.Join(failure, s.write(st))
}

// load does what a daemon-reload does.
func (s *Systemd) load(st *modelState) {
	st.Outdated = false
	for name, unit := range st.Units {
		unit.DropIns, unit.EnvironmentFiles = nil, nil
		dir := filepath.Join("/etc/systemd/system", name+".d")
		found, _ := filepath.Glob(filepath.Join(s.Root, dir, "*.conf"))
		for _, file := range found {
			unit.DropIns = append(unit.DropIns, filepath.Join(dir, filepath.Base(file)))
			content, _ := os.ReadFile(file)
			for line := range strings.Lines(string(content)) {
				if env, ok := strings.CutPrefix(strings.TrimSpace(line), "EnvironmentFile=-"); ok {
					unit.EnvironmentFiles = append(unit.EnvironmentFiles, env)
				}
			}
		}
	}
}

var errStartFailed = errors.New("the daemon did not start")

// run starts a unit's process.
func (s *Systemd) run(st *modelState, name string) error {
	unit := st.Units[name]
	unit.Job = ""
	if s.StartLimitBurst > 0 && unit.Starts+s.ForeignStarts >= s.StartLimitBurst {
		unit.Active, unit.Result = "failed", "start-limit-hit"
		return errStartFailed
	}
	st.Invocations++
	unit.Starts++
	unit.Invocation = fmt.Sprintf("%032x", st.Invocations)
	unit.Environ = ""
	for _, file := range unit.EnvironmentFiles {
		content, _ := os.ReadFile(filepath.Join(s.Root, file)) // "-": whatever cannot be read is nothing
		unit.Environ += string(content)
	}
	unit.Active, unit.Result = "active", "success"
	if strings.Contains(unit.Environ, "FAIL") {
		unit.Active, unit.Result = "failed", "exit-code"
		return errStartFailed
	}
	if strings.Contains(unit.Environ, "HANG") {
		unit.Active = "activating"
	}
	return nil
}

func (st *modelState) unit(name string) (*modelUnit, error) {
	unit, ok := st.Units[name]
	if !ok {
		return nil, fmt.Errorf("looking for %q: %w", name, systemd.ErrNoSuchUnit)
	}
	return unit, nil
}

// jobDue is a start that the boot has queued and that waits for others.
const jobDue = "due"

// State implements apply.Units. A queued job is carried out after having been seen once.
func (s *Systemd) State(_ context.Context, name string) (apply.UnitState, error) {
	var out apply.UnitState
	err := s.change(func(st *modelState) error {
		unit, ok := st.Units[name]
		if !ok {
			out = apply.UnitState{Load: "not-found", Active: "inactive"}
			return nil
		}
		out = apply.UnitState{
			Load: "loaded", Active: unit.Active, Result: unit.Result, InvocationID: unit.Invocation,
			DropInPaths: slices.Clone(unit.DropIns), Job: unit.Job != "",
			StartLimitBurst: s.StartLimitBurst, StartLimitWindow: startLimitWindow,
			StartTimeout: unitTimeout, StopTimeout: unitTimeout,
		}
		if unit.Job != "" && unit.Job != jobDue {
			_ = s.run(st, name) // its failure shows in the state
		}
		return nil
	})
	return out, err
}

// Reload implements apply.Units.
func (s *Systemd) Reload(context.Context) error {
	return s.change(func(st *modelState) error { s.load(st); return nil })
}

// Restart implements apply.Units.
func (s *Systemd) Restart(ctx context.Context, name string) error {
	err := s.change(func(st *modelState) error {
		unit, err := st.unit(name)
		if err != nil {
			return err
		}
		if unit.Active != "active" && unit.Active != "activating" {
			return fmt.Errorf("restarting %q: it is %s", name, unit.Active)
		}
		return s.run(st, name)
	})
	return errors.Join(err, s.await(ctx, name))
}

// Start implements apply.Units and apply.DeadmanUnits.
func (s *Systemd) Start(ctx context.Context, name string) error {
	if program, oneshot, err := s.oneshot(name); err != nil {
		return err
	} else if oneshot {
		return s.Run[name](ctx, program)
	}
	err := s.change(func(st *modelState) error {
		if strings.HasSuffix(name, ".timer") && st.Units[name] == nil {
			if _, err := os.Stat(filepath.Join(s.Root, "/etc/systemd/system", name)); err != nil {
				return err
			}
			st.Units[name] = &modelUnit{Active: "active", Result: "success"}
			return nil
		}
		unit, err := st.unit(name)
		if err != nil || unit.Active == "active" {
			return err
		}
		return s.run(st, name)
	})
	return errors.Join(err, s.await(ctx, name))
}

// oneshot reads which program a oneshot service runs.
func (s *Systemd) oneshot(name string) (program string, is bool, err error) {
	if s.Run[name] == nil {
		return "", false, nil
	}
	content, err := os.ReadFile(filepath.Join(s.Root, "/etc/systemd/system", name))
	if err != nil {
		return "", false, err
	}
	for line := range strings.Lines(string(content)) {
		if command, ok := strings.CutPrefix(line, "ExecStart="); ok {
			program, _, _ = strings.Cut(command, " ")
		}
	}
	return program, true, nil
}

// await blocks while the unit hangs in its start, as a job does.
func (s *Systemd) await(ctx context.Context, name string) error {
	st, err := s.read()
	if err != nil {
		return err
	}
	if unit := st.Units[name]; unit != nil && unit.Active == "activating" {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// Stop implements apply.DeadmanUnits.
func (s *Systemd) Stop(_ context.Context, name string) error {
	return s.change(func(st *modelState) error {
		unit, err := st.unit(name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".timer") {
			delete(st.Units, name)
			return nil
		}
		unit.Active, unit.Job = "inactive", ""
		return nil
	})
}

// ResetFailed implements apply.Units.
func (s *Systemd) ResetFailed(_ context.Context, name string) error {
	return s.change(func(st *modelState) error {
		unit, err := st.unit(name)
		if err != nil {
			return err
		}
		unit.Starts, s.ForeignStarts = 0, 0
		if unit.Active == "failed" {
			unit.Active, unit.Result = "inactive", "success"
		}
		return nil
	})
}

// Enable implements apply.DeadmanInstaller.
func (s *Systemd) Enable(_ context.Context, units ...string) error {
	return s.change(func(st *modelState) error {
		for _, unit := range units {
			if _, err := os.Stat(filepath.Join(s.Root, "/etc/systemd/system", unit)); err != nil {
				return fmt.Errorf("enabling %q: %w", unit, err)
			}
			if !slices.Contains(st.Enabled, unit) {
				st.Enabled = append(st.Enabled, unit)
			}
		}
		st.Outdated = true
		return nil
	})
}

// Disable implements apply.DeadmanInstaller. Like systemd it refuses a unit that has no file.
func (s *Systemd) Disable(_ context.Context, units ...string) error {
	return s.change(func(st *modelState) error {
		for _, unit := range units {
			if _, err := os.Stat(filepath.Join(s.Root, "/etc/systemd/system", unit)); err != nil {
				return fmt.Errorf("disabling %q: %w", unit, err)
			}
		}
		st.Outdated = true
		st.Enabled = slices.DeleteFunc(st.Enabled, func(unit string) bool { return slices.Contains(units, unit) })
		return nil
	})
}
