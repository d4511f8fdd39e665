package drift

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Process is one process of the host.
type Process struct {
	Started time.Time
	// Environ that it was started with, NAME=value. Values may be secret.
	Environ []string
}

// ErrGone says that a process ended before it could be read.
var ErrGone = errors.New("the process has ended")

// Proc reads the host's processes from a proc file system of the host's PID namespace.
type Proc struct{ dir string }

// NewProc returns the processes below a directory, usually /proc.
func NewProc(dir string) Proc { return Proc{dir: dir} }

// Process reads one process. One that is not there, or ends meanwhile, is ErrGone.
func (p Proc) Process(pid int) (Process, error) {
	fail := func(err error) (Process, error) {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			err = ErrGone
		}
		return Process{}, fmt.Errorf("reading process %d below %q: %w", pid, p.dir, err)
	}
	proc, err := procfs.NewFS(p.dir)
	if err != nil {
		return fail(err)
	}
	self, err := proc.Proc(pid)
	if err != nil {
		return fail(err)
	}
	before, err := self.Stat()
	if err != nil {
		return fail(err)
	}
	// Not by the library, which stops at 1 MiB without a word.
	environ, err := os.ReadFile(filepath.Join(p.dir, strconv.Itoa(pid), "environ"))
	if err != nil {
		return fail(err)
	}
	after, err := self.Stat()
	if err != nil {
		return fail(err)
	}
	// The kernel reads the environment of a zombie as empty.
	if before.Starttime != after.Starttime || after.State == "Z" || after.State == "X" {
		return fail(ErrGone)
	}
	seconds, err := after.StartTime()
	if err != nil {
		return fail(err)
	}
	whole, part := math.Modf(seconds)
	started := Process{Started: time.Unix(int64(whole), int64(part*float64(time.Second)))}
	for assignment := range bytes.SplitSeq(environ, []byte{0}) {
		if len(assignment) > 0 {
			started.Environ = append(started.Environ, string(assignment))
		}
	}
	return started, nil
}
