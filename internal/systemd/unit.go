package systemd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
)

// Environment holds assignments (NAME=value) whose values may be secret. It prints as their number.
type Environment struct{ assignments []string }

// NewEnvironment returns assignments that do not print.
func NewEnvironment(assignments []string) Environment {
	return Environment{assignments: slices.Clone(assignments)}
}

// Reveal returns the assignments.
func (e Environment) Reveal() []string { return slices.Clone(e.assignments) }

// String implements fmt.Stringer without any value.
func (e Environment) String() string { return fmt.Sprintf("%d assignments", len(e.assignments)) }

// GoString implements fmt.GoStringer without any value.
func (e Environment) GoString() string { return "systemd.Environment(" + e.String() + ")" }

// LogValue implements slog.LogValuer without any value.
func (e Environment) LogValue() slog.Value { return slog.StringValue(e.String()) }

// MarshalText implements encoding.TextMarshaler without any value.
func (e Environment) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// EnvironmentFile is one EnvironmentFile= as loaded.
type EnvironmentFile struct {
	Path string
	// Optional: a leading "-", with which every failure to read it is ignored.
	Optional bool
}

// Unit is a unit as systemd has it: what it loaded, which need not be what the files say now,
// and how it runs.
type Unit struct {
	Name string
	// LoadState is loaded, not-found, masked, bad-setting, error.
	LoadState string
	// ActiveState is active, reloading, inactive, failed, activating, deactivating.
	ActiveState, SubState string
	UnitFileState         string
	FragmentPath          string
	DropInPaths           []string
	// EnvironmentFiles in the order in which they are read.
	EnvironmentFiles []EnvironmentFile
	// Environment is what Environment= gives, not what the process has.
	Environment      Environment
	UnsetEnvironment []string
	PassEnvironment  []string
	// NeedDaemonReload can be false though the files differ: systemd compares times.
	NeedDaemonReload bool
	// InvocationID in hex, new with each start; "" when the unit never ran.
	InvocationID string
	KillMode     string
	// Type is simple, exec, forking, notify, …
	Type string
	// MainPID in systemd's PID namespace; 0 when there is no main process.
	MainPID int
	// Result of the last run: success, exit-code, start-limit-hit, timeout, …
	Result string
	// ExecMainStatus is the exit status or signal of the last main process.
	ExecMainStatus int
	// ActiveEnterTime is when the unit last became active; zero when never.
	ActiveEnterTime time.Time
	// StartLimitBurst starts are allowed within StartLimitInterval; 0 is no limit.
	StartLimitBurst    uint32
	StartLimitInterval time.Duration
	// StartTimeout and StopTimeout are what systemd allows; the longest duration is no limit.
	StartTimeout, StopTimeout time.Duration
	// PropagatesRestart are the units that are restarted or stopped with this one: those that name
	// it in BindsTo=, Requires= or PartOf=.
	PropagatesRestart []string
	// JobID of a queued job; 0 when there is none.
	JobID uint32
}

// Running says that the unit has, or is about to have, a process that a restart would replace.
// Older versions of systemd do not know "refreshing".
func (u Unit) Running() bool {
	return slices.Contains([]string{"active", "reloading", "refreshing", "activating"}, u.ActiveState)
}

// Show reads a unit. One that systemd does not know is no error: its LoadState is not-found. A
// connection that was lost is replaced once.
func (m *Manager) Show(ctx context.Context, unit string) (Unit, error) {
	u, err := m.showOnce(ctx, unit)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrAbsent) {
		u, err = m.showOnce(ctx, unit)
	}
	if err != nil {
		return Unit{}, fmt.Errorf("reading what systemd loaded for %q: %w", unit, err)
	}
	return u, nil
}

func (m *Manager) showOnce(ctx context.Context, unit string) (Unit, error) {
	var general, service properties
	err := m.call(ctx, func(ctx context.Context, conn *sdbus.Conn) (err error) {
		if general, err = conn.GetUnitPropertiesContext(ctx, unit); err != nil {
			return err
		}
		if strings.HasSuffix(unit, ".service") {
			service, err = conn.GetUnitTypePropertiesContext(ctx, unit, "Service")
		}
		return err
	})
	if err != nil {
		return Unit{}, err
	}
	return parseUnit(unit, general, service), nil
}

// properties are what D-Bus gave, by name. A property that this systemd does not have reads as the
// zero value.
type properties map[string]any

func property[T any](p properties, name string) T {
	v, _ := p[name].(T)
	return v
}

func parseUnit(name string, general, service properties) Unit {
	u := Unit{
		Name:             name,
		LoadState:        property[string](general, "LoadState"),
		ActiveState:      property[string](general, "ActiveState"),
		SubState:         property[string](general, "SubState"),
		UnitFileState:    property[string](general, "UnitFileState"),
		FragmentPath:     property[string](general, "FragmentPath"),
		DropInPaths:      property[[]string](general, "DropInPaths"),
		NeedDaemonReload: property[bool](general, "NeedDaemonReload"),
		InvocationID:     hex.EncodeToString(property[[]byte](general, "InvocationID")),
		ActiveEnterTime:  timestamp(property[uint64](general, "ActiveEnterTimestamp")),
		StartLimitBurst:  property[uint32](general, "StartLimitBurst"),

		StartLimitInterval: duration(property[uint64](general, "StartLimitIntervalUSec")),
		StartTimeout:       duration(property[uint64](service, "TimeoutStartUSec")),
		StopTimeout:        duration(property[uint64](service, "TimeoutStopUSec")),

		EnvironmentFiles: environmentFiles(property[[][]any](service, "EnvironmentFiles")),
		Environment:      NewEnvironment(property[[]string](service, "Environment")),
		UnsetEnvironment: property[[]string](service, "UnsetEnvironment"),
		PassEnvironment:  property[[]string](service, "PassEnvironment"),
		KillMode:         property[string](service, "KillMode"),
		Type:             property[string](service, "Type"),
		MainPID:          int(property[uint32](service, "MainPID")),
		Result:           property[string](service, "Result"),
		ExecMainStatus:   int(property[int32](service, "ExecMainStatus")),
	}
	for _, relation := range []string{"BoundBy", "RequiredBy", "ConsistsOf"} {
		u.PropagatesRestart = append(u.PropagatesRestart, property[[]string](general, relation)...)
	}
	slices.Sort(u.PropagatesRestart)
	u.PropagatesRestart = slices.Compact(u.PropagatesRestart)
	if job := property[[]any](general, "Job"); len(job) == 2 {
		u.JobID, _ = job[0].(uint32)
	}
	return u
}

// environmentFiles converts a(sb).
func environmentFiles(list [][]any) []EnvironmentFile {
	var files []EnvironmentFile
	for _, item := range list {
		if len(item) != 2 {
			continue
		}
		path, _ := item[0].(string)
		optional, _ := item[1].(bool)
		files = append(files, EnvironmentFile{Path: path, Optional: optional})
	}
	return files
}

// timestamp converts microseconds since the epoch; 0 is never.
func timestamp(usec uint64) time.Time {
	if usec == 0 || usec > math.MaxInt64 {
		return time.Time{}
	}
	return time.UnixMicro(int64(usec))
}

// duration converts microseconds; systemd's infinity becomes the longest duration.
func duration(usec uint64) time.Duration {
	if usec > math.MaxInt64/uint64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(usec) * time.Microsecond
}
