package drift

import (
	"io/fs"
	"time"

	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/runtimes"
)

// Observed is one unit in the four layers. A layer that could not be read holds the error in Err;
// nothing may be concluded from it.
type Observed struct {
	Unit    string
	Files   FileLayer
	Loaded  LoadedLayer
	Process ProcessLayer
	Above   AboveLayer
}

// FileLayer is what is on disk.
type FileLayer struct {
	// Ours are the files that were desired or bear our header, by path. A desired file that is
	// not there has an entry that says so.
	Ours map[string]FileState
	// Others are other people's drop-ins and environment files of the unit that name a variable of
	// ours, in the order in which systemd applies them.
	Others []OtherFile
	Err    error
}

// FileState is one file of ours as found.
type FileState struct {
	Exists  bool
	Regular bool
	Owned   bool // bears our header
	// Blocked says that something other than a directory stands where a directory of the path
	// belongs, so that no file can be there.
	Blocked bool
	Mode    fs.FileMode
	Content []byte
}

// OtherFile is somebody else's file that sets a variable of ours.
type OtherFile struct {
	Path string
	Mode fs.FileMode
	// Names of the variables it sets or, where it wins by that, unsets.
	Names []string
	// Vars are what it sets of them. Values may be secret.
	Vars []proxyenv.Var
	// Wins says that its values come after ours. Without Names it keeps our file from being used
	// at all, and Problem says how.
	Wins bool
	// Problem is what systemd makes of it where that is not what it looks like.
	Problem string
}

// LoadedLayer is what systemd has loaded.
type LoadedLayer struct {
	// LoadState is loaded, not-found, masked, …
	LoadState, ActiveState, SubState string
	FragmentPath                     string
	DropInPaths                      []string
	EnvironmentFiles                 []string
	// Environment holds the assignments of Environment=, whose values may be secret.
	Environment       []proxyenv.Var
	UnsetEnvironment  []string
	PassEnvironment   []string
	NeedDaemonReload  bool
	InvocationID      string
	KillMode, Type    string
	MainPID           int
	ActiveEnterTime   time.Time
	StartLimitBurst   uint32
	StartLimitWindow  time.Duration
	PropagatesRestart []string // units that a restart of this one restarts too
	// Absent says that there is no systemd to ask (a plain tree).
	Absent bool
	Err    error
}

// ProcessLayer is the running daemon.
type ProcessLayer struct {
	PID     int
	Started time.Time
	// Environ holds the variables of ours that the process has. Values may be secret.
	Environ []proxyenv.Var
	// Running is False when the unit is stopped: then there is nothing to compare.
	Running runtimes.Tristate
	Err     error
}

// AboveLayer is what wins over the environment.
type AboveLayer struct {
	Overrides []runtimes.Override
	// FromDaemon says that the daemon itself was asked.
	FromDaemon bool
	Err        error
}

// Desired is what one unit must be: files, environment, and what is known of its runtime.
type Desired struct {
	runtimes.Desired
	Environment proxyenv.Environment
	Runtime     runtimes.Runtime
	// Absent asks for our files to go.
	Absent bool
}
