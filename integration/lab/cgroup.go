//go:build linux

package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// cgroupMounts lists the mount points of all cgroup hierarchies, of either
// version.
func cgroupMounts() ([]string, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	defer f.Close()
	var mounts []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			mounts = append(mounts, fields[1])
		}
	}
	return mounts, nil
}

// makeCgroups gives a node a cgroup of its own in every hierarchy. Two nodes
// under one would write the same slices and kill each other's units.
func makeCgroups(name string) ([]string, error) {
	mounts, err := cgroupMounts()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, m := range mounts {
		dir := filepath.Join(m, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("creating a cgroup: %w", err)
		}
		if err := inheritCpuset(m, dir); err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// inheritCpuset fills in what cpuset of cgroup v1 leaves empty and without
// which no process can enter; cloning passes it to the groups below.
func inheritCpuset(parent, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "cpuset.cpus")); err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.clone_children")); err != nil {
		return nil // version 2 inherits by itself
	}
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, f))
		if err != nil {
			return fmt.Errorf("reading the host's cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), value, 0o644); err != nil {
			return fmt.Errorf("setting up a cpuset: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0o644); err != nil {
		return fmt.Errorf("setting up a cpuset: %w", err)
	}
	return nil
}

// removeCgroups removes the node's cgroups, whose processes have ended.
func removeCgroups(name string) error {
	mounts, err := cgroupMounts()
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range mounts {
		errs = append(errs, removeCgroup(filepath.Join(m, name)))
	}
	return errors.Join(errs...)
}

// removeCgroup removes a cgroup and those below it. The kernel may count a
// process that just ended for a moment longer, hence the tries.
func removeCgroup(dir string) error {
	for try := 0; ; try++ {
		var dirs []string
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
			// Only rmdir works here: the files in it are not ours to unlink.
			if e := os.Remove(dirs[i]); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		}
		if err == nil {
			return nil
		}
		if try == 40 {
			return fmt.Errorf("removing cgroup %q: %w", dir, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
