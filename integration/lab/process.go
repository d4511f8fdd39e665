//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proxyward/proxyward/integration/internal/procnet"
)

// markerName is set to the lab's token in the environment of every process the
// lab starts. It exists before the process does, so no process is unrecorded.
const markerName = "PROXYWARD_LAB"

// processID names one process for good: a reused PID has another start time.
type processID struct {
	PID   int
	Start uint64 // clock ticks since boot, field 22 of proc_pid_stat(5)
}

func identify(pid int) (processID, error) {
	fields, err := statFields(pid)
	if err != nil {
		return processID{}, err
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return processID{}, fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	return processID{PID: pid, Start: start}, nil
}

// statFields returns the fields of /proc/PID/stat from the third (state) on.
func statFields(pid int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	// The second field, the command in parentheses, may hold blanks.
	_, rest, _ := strings.Cut(string(raw[bytes.LastIndexByte(raw, ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return nil, fmt.Errorf("reading the state of process %d: %d fields", pid, len(fields))
	}
	return fields, nil
}

// alive is false for a zombie too, which holds nothing any more, unless it has
// threads left that are on their way out.
func (id processID) alive() bool {
	now, err := identify(id.PID)
	if err != nil || now != id {
		return false
	}
	fields, err := statFields(id.PID)
	if err != nil {
		return false
	}
	state, threads := fields[0], fields[17]
	return state != "Z" && state != "X" || (threads != "0" && threads != "1")
}

// serviceSpec is a program that the lab keeps running in the background.
type serviceSpec struct {
	name string   // of its log and its record
	ns   string   // network namespace; empty for the host's
	env  []string // added to PATH and the marker
	argv []string
}

// startService starts the program in a session of its own, with its output in
// the lab's log folder. It ends with [Down], not with the caller.
func (l *Lab) startService(spec serviceSpec) (processID, error) {
	argv := spec.argv
	if spec.ns != "" {
		argv = append([]string{"nsenter", "--net=" + nsPath(spec.ns), "--"}, argv...)
	}
	log, err := os.OpenFile(l.logPath(spec.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return processID{}, fmt.Errorf("opening the log of %s: %w", spec.name, err)
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + nodePath, markerName + "=" + l.state.Token}, spec.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = l.state.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return processID{}, fmt.Errorf("starting %s: %w", spec.name, err)
	}
	id, err := identify(cmd.Process.Pid)
	// Its end is seen through /proc; waiting only keeps it from staying a zombie.
	go func() { _ = cmd.Wait() }()
	if err != nil {
		return processID{}, fmt.Errorf("starting %s: it ended at once: %w%s", spec.name, err, l.logTail(spec.name))
	}
	return id, l.state.setProcess(spec.name, id)
}

// awaitListening waits until the service listens at addr. It looks at the
// kernel's table instead of connecting, which the service would log.
func (l *Lab) awaitListening(ctx context.Context, name string, id processID, addr netip.AddrPort) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := eventually(ctx, 20*time.Second, "waiting for "+name, func() error {
		if !id.alive() {
			cancel()
			return errors.New("it ended")
		}
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", id.PID))
		if err != nil {
			return err
		}
		if s, ok := procnet.Find(string(table), addr); !ok || s.State != procnet.Listen {
			return fmt.Errorf("it does not listen at %s yet", addr)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w%s", err, l.logTail(name))
	}
	return nil
}

func (l *Lab) stopService(ctx context.Context, name string) error {
	id, ok := l.state.process(name)
	if !ok {
		return fmt.Errorf("stopping %s: it was never started", name)
	}
	return stopProcess(ctx, id)
}

func (l *Lab) logPath(name string) string { return l.state.path("log", name+".log") }

// logTail is the end of a log as a suffix for an error.
func (l *Lab) logTail(name string) string {
	raw, err := os.ReadFile(l.logPath(name))
	if err != nil || len(raw) == 0 {
		return ""
	}
	const keep = 1500
	return fmt.Sprintf("; its log ends with:\n%s", raw[max(0, len(raw)-keep):])
}

// stopProcess kills the process and waits for its end.
func stopProcess(ctx context.Context, id processID) error {
	if err := kill(id.PID, id.alive); err != nil {
		return err
	}
	return eventually(ctx, 10*time.Second, fmt.Sprintf("waiting for the end of process %d", id.PID), func() error {
		if id.alive() {
			return errors.New("it is still there")
		}
		return nil
	})
}

// kill sends SIGKILL to pid if still says, with the process held fast, that it
// is the one meant.
func kill(pid int, still func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // gone already
	}
	defer unix.Close(fd)
	if !still() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	return nil
}

// pids lists all processes.
func pids() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var list []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, pid)
		}
	}
	return list, nil
}

// hasMarker says whether the lab with this token started the process.
func hasMarker(pid int, token string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, raw...), []byte("\x00"+markerName+"="+token+"\x00"))
}

// netnsOf identifies the network namespace of a process.
func netnsOf(pid int) (inode, error) { return inodeOf(fmt.Sprintf("/proc/%d/ns/net", pid)) }

type inode struct{ dev, ino uint64 }

func inodeOf(path string) (inode, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return inode{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return inode{st.Dev, st.Ino}, nil
}

// children lists the children of all threads of a process.
func children(pid int) []int {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	var list []int
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}
