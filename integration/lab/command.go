//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Result is what a command that ran left behind.
type Result struct {
	Stdout, Stderr []byte
	ExitCode       int
}

// capture runs cmd. A non-zero exit is no error, a command that could not be
// run or was ended by a signal is one.
func capture(cmd *exec.Cmd) (Result, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		r.ExitCode = exit.ExitCode()
		return r, nil
	}
	return r, err
}

// groupCommand makes a command whose whole process group ends with ctx.
func groupCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run executes a command on the host and puts its output into the error.
func run(ctx context.Context, name string, args ...string) error {
	out, err := groupCommand(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %q: %w: %s", strings.Join(append([]string{name}, args...), " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// eventually calls check every 50 ms until it succeeds, the timeout passes or
// ctx ends; the error then holds what check said last.
func eventually(ctx context.Context, timeout time.Duration, doing string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", doing, ctx.Err(), err)
		case <-tick.C:
		}
	}
}
