package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// packagePath is this package; the go command says where its folder is.
	packagePath = "github.com/proxyward/proxyward/integration/controlplane"
	// heartbeat is how often a running compile says that it still runs.
	heartbeat = 20 * time.Second
)

// Build compiles the programs that [Dir] lacks and returns that folder. It
// must run inside the integration module. Only one build runs at a time on a
// folder: a second one waits for the first and then finds the work done. Each
// program appears under its name complete or not at all, so an interrupted
// build goes on where it stopped. Progress goes to out, a line at least every
// 20 seconds.
func Build(ctx context.Context, out io.Writer) (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), out)
	if err != nil {
		return "", err
	}
	defer unlock()

	missing, err := missingIn(dir)
	if err != nil {
		return "", err
	}
	if len(missing) == 0 {
		return dir, nil
	}
	tools, err := toolsDir(ctx)
	if err != nil {
		return "", err
	}
	start := time.Now()
	for i, b := range missing {
		fmt.Fprintf(out, "control plane %s: compiling %s (%d of %d; about %s from cold)\n",
			elapsed(start), b.name, i+1, len(missing), b.cold)
		if err := compile(ctx, b, tools, dir, start, out); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(out, "control plane %s: built into %s\n", elapsed(start), dir)
	return dir, nil
}

// toolsDir returns the folder of the module that pins the programs' sources.
func toolsDir(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", packagePath)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking go for the folder of %q: %w: %s; run this inside the integration module",
			packagePath, err, strings.TrimSpace(stderr.String()))
	}
	return filepath.Join(strings.TrimSpace(string(stdout)), "tools"), nil
}

// compile builds b into dir under a temporary name and renames it when it is
// complete. The compile runs at low priority: it is long, and the machine has
// other work.
func compile(ctx context.Context, b binary, tools, dir string, start time.Time, out io.Writer) error {
	target := filepath.Join(dir, b.name)
	partial := filepath.Join(dir, "."+b.name+".partial")
	ldflags := "-s -w"
	if b.stamp != "" {
		ldflags += " -X " + b.stamp
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", "10",
		"go", "build", "-mod=readonly", "-trimpath", "-ldflags="+ldflags, "-o", partial, b.pkg)
	cmd.Dir = tools
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	// An interrupt lets go remove its own temporary folder.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said

	stop := beat(b.name, start, out)
	err := cmd.Run()
	stop()
	if err != nil {
		return errors.Join(
			fmt.Errorf("compiling %s from %q in %q: %w: %s", b.name, b.pkg, tools, err, tail(said.String(), 2000)),
			removeIfThere(partial))
	}
	if err := os.Rename(partial, target); err != nil {
		return fmt.Errorf("putting the compiled %s in place: %w", b.name, err)
	}
	return nil
}

// beat says every 20 seconds that name is still being compiled, until the
// returned function is called.
func beat(name string, start time.Time, out io.Writer) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(out, "control plane %s: still compiling %s\n", elapsed(start), name)
			}
		}
	}()
	return func() { close(done); <-stopped }
}

// lock takes the exclusive lock at path, waiting for another build to end,
// and returns the function that gives it back. The kernel gives it back too
// when the holder dies.
func lock(ctx context.Context, path string, out io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build's lock: %w", err)
	}
	start, said := time.Now(), time.Time{}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// Closing gives the lock back; nothing was written to lose.
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %q: %w", path, err), file.Close())
		}
		if time.Since(said) >= heartbeat {
			said = time.Now()
			fmt.Fprintf(out, "control plane %s: waiting for the build that holds %s\n", elapsed(start), path)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for the lock %q: %w", path, ctx.Err()), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing the incomplete file: %w", err)
	}
	return nil
}

// elapsed is the time since start in whole seconds, as minutes and seconds.
func elapsed(start time.Time) string {
	s := int(time.Since(start).Seconds())
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// tail returns the last n bytes of s.
func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}
