package drift

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/proxyward/proxyward/internal/systemd"
	"github.com/proxyward/proxyward/runtimes"
)

// Tree is a host's files.
type Tree interface {
	runtimes.HostFS
	Lstat(path string) (fs.FileInfo, error)
}

// Systemd says what is loaded.
type Systemd interface {
	Show(ctx context.Context, unit string) (systemd.Unit, error)
}

// Processes are the host's.
type Processes interface {
	// Process reads one by the PID that systemd gave.
	Process(pid int) (Process, error)
}

// Docker asks a Docker daemon what proxies it uses.
type Docker interface {
	// Proxies of the daemon behind a socket on the host.
	Proxies(ctx context.Context, socket string) (DockerProxies, error)
}

// DockerProxies are what a Docker daemon says in GET /info. It masks credentials itself.
type DockerProxies struct {
	HTTP, HTTPS, No string
}

// Host is where a unit is observed.
type Host struct {
	Files Tree
	// Systemd is nil on a plain tree.
	Systemd Systemd
	// Processes is nil on a plain tree.
	Processes Processes
	// Docker is nil where no daemon is to be asked; then files alone say what is above.
	Docker Docker
}

// UnitRef is a unit to observe.
type UnitRef struct {
	Unit string
	// Paths of the files that are desired, beside those that Proxyward always has.
	Paths []string
	// Runtime as its adapter found it.
	Runtime runtimes.Runtime
}

// Observe looks at each unit in the four layers. It gives one result per unit, in order; what
// could not be read stands in the layer's Err.
func Observe(ctx context.Context, host Host, units []UnitRef) []Observed {
	observed := make([]Observed, 0, len(units))
	for _, ref := range units {
		o := Observed{Unit: ref.Unit, Files: observeFiles(host.Files, ref)}
		o.Loaded, o.Process = observeRunning(ctx, host, ref)
		o.Above = observeAbove(ctx, host, ref, o.Process)
		observed = append(observed, o)
	}
	return observed
}

const (
	// lookAgain is how often, and lookPause how long apart, a process is looked at that may not be
	// the daemon yet: between fork and exec it has somebody else's environment, in exec it has none.
	lookAgain = 5
	lookPause = 20 * time.Millisecond
	// justStarted is the age below which a unit's process is doubted.
	justStarted = 5 * time.Second
)

// observeRunning reads what systemd loaded and the process that it names. A process that is gone by
// then was replaced meanwhile, so systemd is asked again.
func observeRunning(ctx context.Context, host Host, ref UnitRef) (LoadedLayer, ProcessLayer) {
	if host.Systemd == nil {
		return LoadedLayer{Absent: true}, ProcessLayer{}
	}
	for attempt := 1; ; attempt++ {
		unit, err := host.Systemd.Show(ctx, ref.Unit)
		if err != nil {
			return LoadedLayer{Err: err}, ProcessLayer{Err: fmt.Errorf("reading the process of %q: systemd did not say which it is", ref.Unit)}
		}
		loaded := loadedLayer(unit, ref.Runtime.Prefix)
		process, sure := observeProcess(host.Processes, loaded, ref.Runtime.Prefix)
		if sure || attempt == lookAgain {
			return loaded, process
		}
		select {
		case <-ctx.Done():
			return loaded, process
		case <-time.After(lookPause):
		}
	}
}

// loadedLayer converts what systemd says, with the variables that concern us alone.
func loadedLayer(u systemd.Unit, prefix string) LoadedLayer {
	l := LoadedLayer{
		LoadState: u.LoadState, ActiveState: u.ActiveState, SubState: u.SubState,
		FragmentPath:      u.FragmentPath,
		DropInPaths:       u.DropInPaths,
		Environment:       ourVars(u.Environment.Reveal(), prefix),
		UnsetEnvironment:  u.UnsetEnvironment,
		PassEnvironment:   u.PassEnvironment,
		NeedDaemonReload:  u.NeedDaemonReload,
		InvocationID:      u.InvocationID,
		KillMode:          u.KillMode,
		Type:              u.Type,
		MainPID:           u.MainPID,
		ActiveEnterTime:   u.ActiveEnterTime,
		StartLimitBurst:   u.StartLimitBurst,
		StartLimitWindow:  u.StartLimitInterval,
		PropagatesRestart: u.PropagatesRestart,
	}
	for _, f := range u.EnvironmentFiles {
		path := f.Path
		if f.Optional {
			path = "-" + path
		}
		l.EnvironmentFiles = append(l.EnvironmentFiles, path)
	}
	return l
}

// observeProcess reads the main process of a unit that runs. It is sure of what it returns unless
// another look could show something else.
func observeProcess(processes Processes, loaded LoadedLayer, prefix string) (layer ProcessLayer, sure bool) {
	switch loaded.ActiveState {
	case "active", "reloading", "refreshing":
	case "inactive", "failed", "deactivating":
		return ProcessLayer{Running: runtimes.False}, true
	default:
		return ProcessLayer{}, true // activating: the process, if any, need not be the daemon yet
	}
	fail := func(err error) ProcessLayer {
		return ProcessLayer{PID: loaded.MainPID, Running: runtimes.True, Err: err}
	}
	if loaded.MainPID == 0 {
		return fail(errors.New("reading the unit's process: systemd knows no main process of it")), true
	}
	if processes == nil {
		return fail(fmt.Errorf("reading process %d: the host's processes cannot be seen from here", loaded.MainPID)), true
	}
	p, err := processes.Process(loaded.MainPID)
	if err != nil {
		return fail(err), !errors.Is(err, ErrGone)
	}
	if len(p.Environ) == 0 {
		return fail(fmt.Errorf("reading process %d: it has no environment at all, which systemd gives to no service; it is just being started, or hides it", loaded.MainPID)), false
	}
	// systemd tells each process its invocation. A unit may take that away, or have a main process
	// that systemd did not start, so after a while the process counts as it is.
	sure = slices.Contains(p.Environ, "INVOCATION_ID="+loaded.InvocationID) || time.Since(loaded.ActiveEnterTime) > justStarted
	return ProcessLayer{
		PID:     loaded.MainPID,
		Started: p.Started,
		Environ: ourVars(p.Environ, prefix),
		Running: runtimes.True,
	}, sure
}
