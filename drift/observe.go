package drift

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/proxyward/proxyward/internal/systemd"
	"github.com/proxyward/proxyward/runtimes"
)

// Tree is a host's files.
type Tree interface {
	runtimes.HostFS
	Lstat(path string) (fs.FileInfo, error)
	Readlink(path string) (string, error)
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

// observeRunning reads what systemd loaded and the process that it names. A process that is gone
// by then was replaced meanwhile, so systemd is asked once more.
func observeRunning(ctx context.Context, host Host, ref UnitRef) (LoadedLayer, ProcessLayer) {
	if host.Systemd == nil {
		return LoadedLayer{Absent: true}, ProcessLayer{}
	}
	var (
		loaded  LoadedLayer
		process ProcessLayer
	)
	for range 2 {
		unit, err := host.Systemd.Show(ctx, ref.Unit)
		if err != nil {
			return LoadedLayer{Err: err}, ProcessLayer{Err: fmt.Errorf("reading the process of %q: systemd did not say which it is", ref.Unit)}
		}
		loaded = loadedLayer(unit, ref.Runtime.Prefix)
		process = observeProcess(host.Processes, loaded, ref.Runtime.Prefix)
		if process.Err == nil {
			break
		}
	}
	return loaded, process
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

// observeProcess reads the main process of a unit that runs.
func observeProcess(processes Processes, loaded LoadedLayer, prefix string) ProcessLayer {
	switch loaded.ActiveState {
	case "active", "reloading":
	case "inactive", "failed", "deactivating":
		return ProcessLayer{Running: runtimes.False}
	default:
		return ProcessLayer{} // activating: the process, if any, need not be the daemon yet
	}
	fail := func(err error) ProcessLayer {
		return ProcessLayer{PID: loaded.MainPID, Running: runtimes.True, Err: err}
	}
	if loaded.MainPID == 0 {
		return fail(fmt.Errorf("reading the unit's process: systemd knows no main process of it"))
	}
	if processes == nil {
		return fail(fmt.Errorf("reading process %d: the host's processes cannot be seen from here", loaded.MainPID))
	}
	p, err := processes.Process(loaded.MainPID)
	if err != nil {
		return fail(err)
	}
	return ProcessLayer{
		PID:     loaded.MainPID,
		Started: p.Started,
		Environ: ourVars(p.Environ, prefix),
		Running: runtimes.True,
	}
}
