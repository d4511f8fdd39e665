package runtimes

import (
	"io/fs"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// HostFS reads a host's tree by absolute path, with symbolic links resolved inside that tree.
type HostFS interface {
	ReadFile(path string) ([]byte, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Stat(path string) (fs.FileInfo, error)
	// Readlink returns the text of a symbolic link; anything else is an error.
	Readlink(path string) (string, error)
}

// Adapter is one kind of daemon.
type Adapter interface {
	// Target that the adapter serves.
	Target() v1alpha1.Target
	// Units that the daemon's unit may be called, the most usual first.
	Units() []string
	// Experimental adapters have not been run on their real daemon and serve only when named.
	Experimental() bool
	// Inspect reads what the host's files say about the daemon whose unit was found. A file that
	// cannot be read or parsed is an error that names it; absent files are defaults. A daemon that
	// cannot be configured is a RefusedError.
	Inspect(host HostFS, unit string) (Runtime, error)
}

// RefusedError is Inspect's error for a daemon that is there and cannot be configured as this kind
// of daemon. Detect reports it and goes on.
type RefusedError struct {
	// Unit of the daemon.
	Unit string
	// Why, and what to do.
	Why string
}

// Error names the unit and the reason.
func (e *RefusedError) Error() string { return "inspecting " + e.Unit + ": " + e.Why }

// Runtime is what a host's files say about one daemon.
type Runtime struct {
	Target v1alpha1.Target
	Unit   string
	// Prefix of the variables that reach only this runtime (CONTAINERD_ on K3s), or "".
	Prefix string
	// Socket of the CRI or, for Docker, of its API; an absolute path on the host, or "".
	Socket string
	// API is the protocol behind Socket.
	API PullAPI
	// Config lists the files that were read.
	Config []string
	// Hosts are the mirrors and hosts that pulls of each registry go to, in order.
	Hosts []RegistryHosts
	// Overrides above the environment, as the files say; the daemon itself may know better.
	Overrides []Override
	// Restart says what a restart of the unit does to running containers.
	Restart RestartEffect
}

// PullAPI is the protocol through which the daemon is asked to pull.
type PullAPI string

// The pull APIs.
const (
	PullByCRI    PullAPI = "CRI"
	PullByDocker PullAPI = "Docker"
	PullNone     PullAPI = "None"
)

// RegistryHosts is the list of hosts that one registry's pulls are sent to.
type RegistryHosts struct {
	// Registry as images name it, or "*" for all that have no list of their own. CRI-O's lists may
	// be for host/repository, for *.domain, and for references of one kind.
	Registry string
	// References that the list is for.
	References ReferenceKind
	// Hosts that layers and manifests are pulled from, in the order in which they are tried, each a
	// URL (scheme://host[:port][/path]).
	Hosts []string
	// Resolvers are the hosts that are asked which digest a tag has, in order; nil when they are
	// the same as Hosts.
	Resolvers []string
	// FallsBack says that the registry itself is tried after them.
	FallsBack bool
	// File that says so.
	File string
	// Doubt is not empty when files alone do not tell whether the daemon goes by this list, and
	// says why.
	Doubt string
}

// ReferenceKind tells by what an image is named.
type ReferenceKind string

// The kinds of references.
const (
	AnyReference ReferenceKind = ""
	ByTag        ReferenceKind = "tag"
	ByDigest     ReferenceKind = "digest"
)

// Override is a setting that wins over the process environment.
type Override struct {
	// File and Key that hold it.
	File, Key string
	// Variable that it sets, in capitals (HTTP_PROXY, …); both cases of it are meant.
	Variable string
	// Value with any credentials masked.
	Value string
}

// RestartEffect is what a restart does to running containers.
type RestartEffect struct {
	// KillsContainers: True, False or Unknown.
	KillsContainers Tristate
	// Why, for a person: the setting and the file that decide.
	Why string
	// Refuse is not empty when the daemon must not be restarted at all, and says why.
	Refuse string
}

// Tristate is a truth value that may be unknown; its zero value is Unknown.
type Tristate int

// The truth values.
const (
	Unknown Tristate = iota
	False
	True
)

// String returns "unknown", "false" or "true".
func (t Tristate) String() string {
	switch t {
	case True:
		return "true"
	case False:
		return "false"
	default:
		return "unknown"
	}
}

// MarshalText writes what String returns.
func (t Tristate) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// File is one file that must stand on the host.
type File struct {
	// Path on the host, absolute.
	Path string
	Mode fs.FileMode
	// Content, which for a Secret file must not be shown.
	Content []byte
	// Masked is Content with secrets masked, for diffs and people.
	Masked []byte
}

// Desired is what must be true of one unit.
type Desired struct {
	Target v1alpha1.Target
	Unit   string
	// Files in the order in which they are written: what is referred to before what refers to it.
	Files []File
}
