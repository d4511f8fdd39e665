//go:build linux

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Down removes everything the lab made. Calling it again does nothing.
func (l *Lab) Down(ctx context.Context) error {
	if l.claim == nil {
		return remove(ctx, l.state.Dir)
	}
	l.say("removing lab %q", l.state.Name)
	if err := dismantle(ctx, l.state, true); err != nil {
		return err
	}
	c := l.claim
	l.claim = nil
	return c.release()
}

// Down removes the lab of that name and its leftovers, whoever brought it up,
// by what was recorded of it; an empty stateDir means [DefaultStateDir]. It does
// nothing where there is none, and fails where a living process owns it.
func Down(ctx context.Context, name, stateDir string, progress io.Writer) error {
	cfg := Config{Name: name, StateDir: stateDir}
	if err := cfg.complete(); err != nil {
		return err
	}
	if err := checkHost(); err != nil {
		return err
	}
	dir := filepath.Join(cfg.StateDir, name)
	if _, err := os.Stat(statePath(dir)); errors.Is(err, fs.ErrNotExist) {
		say(progress, "there is no lab %q", name)
		return nil
	}
	say(progress, "removing lab %q", name)
	return remove(ctx, dir)
}

// remove dismantles the lab recorded in dir, if any.
func remove(ctx context.Context, dir string) error {
	s, err := loadState(dir)
	if err != nil || s == nil {
		return err
	}
	c, err := takeOver(s)
	if err != nil {
		return err
	}
	if err := dismantle(ctx, s, c != nil); err != nil {
		return err
	}
	if c == nil {
		return nil
	}
	return c.release()
}

// dismantle removes what s records. Namespaces and links are named by the
// index, so without its claim they may be another lab's and are left alone.
func dismantle(ctx context.Context, s *state, claimed bool) error {
	var namespaces []string
	if claimed {
		for _, r := range s.nodeRecords() {
			namespaces = append(namespaces, s.nodeNS(r))
		}
		namespaces = append(namespaces, s.servicesNS())
	}
	if err := killAll(ctx, s.Token, namespaces); err != nil {
		return err
	}
	for _, r := range s.nodeRecords() {
		if err := removeNodeTraces(s, r); err != nil {
			return err
		}
	}
	if err := unmountBelow(s.Dir); err != nil {
		return err
	}
	if claimed {
		if err := removeLink(ctx, s.hostLink()); err != nil {
			return err
		}
	}
	for _, ns := range namespaces {
		if err := removeNetns(ctx, ns); err != nil {
			return err
		}
	}
	// The record goes last, so that an interrupted removal can be repeated.
	if err := removeAllBut(s.Dir, statePath(s.Dir)); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		return fmt.Errorf("removing the lab's folder: %w", err)
	}
	return nil
}

// killAll kills every process inside the namespaces or with the lab's marker,
// and looks again until there is none.
func killAll(ctx context.Context, token string, namespaces []string) error {
	inside := map[inode]bool{}
	for _, ns := range namespaces {
		id, err := inodeOf(nsPath(ns))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("identifying namespace %q: %w", ns, err)
		}
		inside[id] = true
	}
	ours := func(pid int) bool {
		ns, err := netnsOf(pid)
		return err == nil && inside[ns] || hasMarker(pid, token)
	}
	return eventually(ctx, 30*time.Second, "ending the lab's processes", func() error {
		all, err := pids()
		if err != nil {
			return err
		}
		var left []int
		for _, pid := range all {
			if pid == os.Getpid() || !ours(pid) {
				continue
			}
			if err := kill(pid, func() bool { return ours(pid) }); err != nil {
				return err
			}
			left = append(left, pid)
		}
		if len(left) > 0 {
			return fmt.Errorf("processes %v are still there", left)
		}
		return nil
	})
}

// unmountBelow unmounts everything mounted in dir, the innermost first.
func unmountBelow(dir string) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("listing mounts: %w", err)
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// Field 5 of proc_pid_mountinfo(5) is the mount point.
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	for _, p := range points {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting %q: %w", p, err)
		}
	}
	return nil
}

func removeAllBut(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the lab's folder: %w", err)
	}
	for _, e := range entries {
		if p := filepath.Join(dir, e.Name()); p != keep {
			if err := os.RemoveAll(p); err != nil {
				return fmt.Errorf("removing %q: %w", p, err)
			}
		}
	}
	return nil
}
