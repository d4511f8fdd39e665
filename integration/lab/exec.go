//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// nodePath is the PATH of commands that the lab runs.
const nodePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Command makes a command that runs in all of the node's namespaces, with a
// fresh environment. Its process group ends with ctx.
func (n *Node) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := groupCommand(ctx, "nsenter", append([]string{"--target", strconv.Itoa(n.PID()), "--all", "--"}, args...)...)
	cmd.Env = []string{"PATH=" + nodePath, "HOME=/root", "LANG=C.UTF-8", "TERM=dumb"}
	return cmd
}

// Exec runs a command in the node. A non-zero exit is not an error.
func (n *Node) Exec(ctx context.Context, args ...string) (Result, error) {
	r, err := capture(n.Command(ctx, args...))
	if err != nil {
		return r, fmt.Errorf("running %q on node %q: %w: %s", strings.Join(args, " "), n.Name, err, bytes.TrimSpace(r.Stderr))
	}
	return r, nil
}

// Run runs a command in the node and returns its standard output; a non-zero
// exit is an error that holds what it said.
func (n *Node) Run(ctx context.Context, args ...string) (string, error) {
	r, err := n.Exec(ctx, args...)
	if err != nil {
		return "", err
	}
	if r.ExitCode != 0 {
		return string(r.Stdout), fmt.Errorf("running %q on node %q: exit code %d: %s%s",
			strings.Join(args, " "), n.Name, r.ExitCode, bytes.TrimSpace(r.Stderr), bytes.TrimSpace(r.Stdout))
	}
	return string(r.Stdout), nil
}

// WriteFile writes a file in the node, whose parent folders are made.
func (n *Node) WriteFile(ctx context.Context, path string, content []byte, mode os.FileMode) error {
	cmd := n.Command(ctx, "install", "-D", "-m", fmt.Sprintf("%#o", mode.Perm()), "/dev/stdin", path)
	cmd.Stdin = bytes.NewReader(content)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("writing %q on node %q: %w: %s", path, n.Name, err, bytes.TrimSpace(out))
	}
	return nil
}

// ReadFile reads a file in the node.
func (n *Node) ReadFile(ctx context.Context, path string) ([]byte, error) {
	r, err := n.Exec(ctx, "cat", "--", path)
	if err != nil {
		return nil, err
	}
	if r.ExitCode != 0 {
		return nil, fmt.Errorf("reading %q on node %q: %s", path, n.Name, bytes.TrimSpace(r.Stderr))
	}
	return r.Stdout, nil
}

// CopyIn copies a file of the host into the node.
func (n *Node) CopyIn(ctx context.Context, src, dst string, mode os.FileMode) error {
	content, err := os.ReadFile(src)
	if err != nil {
		return fmt.Errorf("copying into node %q: %w", n.Name, err)
	}
	return n.WriteFile(ctx, dst, content, mode)
}

// Show returns one property of a unit, as `systemctl show` prints it.
func (n *Node) Show(ctx context.Context, unit, property string) (string, error) {
	out, err := n.Run(ctx, "systemctl", "show", "--value", "--property", property, "--", unit)
	return strings.TrimSuffix(out, "\n"), err
}

// MainPID is the number of the unit's main process inside the node, 0 when it
// does not run.
func (n *Node) MainPID(ctx context.Context, unit string) (int, error) {
	text, err := n.Show(ctx, unit, "MainPID")
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("reading the main process of %q on node %q: %w", unit, n.Name, err)
	}
	return pid, nil
}

// Environ is the environment of the unit's main process, byte for byte as the
// kernel has it.
func (n *Node) Environ(ctx context.Context, unit string) (map[string]string, error) {
	pid, err := n.MainPID(ctx, unit)
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, fmt.Errorf("reading the environment of %q on node %q: it does not run", unit, n.Name)
	}
	// The node's own /proc, so that the number is the right one.
	raw, err := os.ReadFile(fmt.Sprintf("%s/proc/%d/environ", n.Live(), pid))
	if err != nil {
		return nil, fmt.Errorf("reading the environment of %q on node %q: %w", unit, n.Name, err)
	}
	env := map[string]string{}
	for entry := range strings.SplitSeq(string(raw), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env, nil
}

// WaitUnit waits until the unit's ActiveState is the one given and no job of it
// is queued.
func (n *Node) WaitUnit(ctx context.Context, unit, activeState string, timeout time.Duration) error {
	doing := fmt.Sprintf("waiting for %q to be %s on node %q", unit, activeState, n.Name)
	return eventually(ctx, timeout, doing, func() error {
		out, err := n.Run(ctx, "systemctl", "show", "--property", "ActiveState,SubState,Result,Job", "--", unit)
		if err != nil {
			return err
		}
		lines := strings.Split(out, "\n")
		idle := true
		for _, l := range lines {
			if job, ok := strings.CutPrefix(l, "Job="); ok && job != "" && job != "0" {
				idle = false
			}
		}
		for _, l := range lines {
			if l == "ActiveState="+activeState && idle {
				return nil
			}
		}
		return errors.New(strings.Join(strings.Fields(out), " "))
	})
}

// Journal is the unit's log of the current boot.
func (n *Node) Journal(ctx context.Context, unit string) (string, error) {
	return n.Run(ctx, "journalctl", "--no-pager", "--boot", "--output=short-precise", "--unit", unit)
}
