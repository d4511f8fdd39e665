//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// runDir holds the claims: one file per index, named by it, whose content is the
// folder of the lab. A lab's owner keeps its claim locked while it lives, so a
// claim that can be locked has no owner any more.
const runDir = "/run/proxyward-lab"

const maxIndex = 250

// lockTimeout leaves another run the time to install packages and build roots.
const lockTimeout = 15 * time.Minute

type claim struct {
	index int
	file  *os.File
}

func claimPath(index int) string { return filepath.Join(runDir, strconv.Itoa(index)) }

// lockFile opens path, creating it, and waits for its exclusive lock.
func lockFile(ctx context.Context, progress io.Writer, path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of lock %q: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening lock %q: %w", path, err)
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return f, nil
	}
	say(progress, "waiting for another run of the lab (%s)", path)
	err = eventually(ctx, lockTimeout, fmt.Sprintf("waiting for lock %q", path), func() error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// claimIndex takes the lowest index that no lab has and whose subnet the host
// does not use.
func claimIndex(ctx context.Context, progress io.Writer, dir string) (*claim, error) {
	lock, err := lockFile(ctx, progress, filepath.Join(runDir, "lock"))
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	taken, err := hostPrefixes()
	if err != nil {
		return nil, err
	}
	for index := 1; index <= maxIndex; index++ {
		s := state{Index: index}
		if overlaps(taken, s.subnet()) || overlaps(taken, s.externalSubnet()) {
			continue
		}
		f, err := os.OpenFile(claimPath(index), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("claiming an index: %w", err)
		}
		c := &claim{index: index, file: f}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("locking the claim: %w", err), c.release())
		}
		if _, err := f.WriteString(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("writing the claim: %w", err), c.release())
		}
		return c, nil
	}
	return nil, fmt.Errorf("claiming an index: all %d are taken: look into %s", maxIndex, runDir)
}

func (c *claim) release() error {
	if err := os.Remove(claimPath(c.index)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("releasing the claim: %w", err), c.file.Close())
	}
	return c.file.Close()
}

// takeOver locks the claim of a lab that this process did not bring up. It
// returns nil where the index belongs to another lab by now, or to none.
func takeOver(s *state) (*claim, error) {
	f, err := os.OpenFile(claimPath(s.Index), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the claim of lab %q: %w", s.Name, err)
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the claim of lab %q: %w", s.Name, err), f.Close())
	}
	if string(raw) != s.Dir {
		return nil, f.Close()
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("taking lab %q over: another process owns it: end that one first: %w", s.Name, err), f.Close())
	}
	return &claim{index: s.Index, file: f}, nil
}

// sweep removes labs whose owner ended without removing them.
func sweep(ctx context.Context, progress io.Writer) error {
	lock, err := lockFile(ctx, progress, filepath.Join(runDir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	entries, err := os.ReadDir(runDir)
	if err != nil {
		return fmt.Errorf("reading the claims: %w", err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		dir, ownerless, err := inspectClaim(filepath.Join(runDir, e.Name()))
		if err != nil {
			return err
		}
		if !ownerless {
			continue
		}
		s, err := loadState(dir)
		if err != nil {
			return err
		}
		if s == nil {
			// Its owner ended between the claim and the first record.
			if err := os.Remove(filepath.Join(runDir, e.Name())); err != nil {
				return fmt.Errorf("removing an empty claim: %w", err)
			}
			continue
		}
		if s.Detached {
			continue
		}
		say(progress, "removing lab %q, whose owner is gone", s.Name)
		if err := remove(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// inspectClaim tells which lab a claim is for and whether nobody holds it.
func inspectClaim(path string) (dir string, ownerless bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("opening a claim: %w", err)
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return "", false, nil
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return "", false, fmt.Errorf("reading claim %q: %w", path, err)
	}
	return strings.TrimSpace(string(raw)), true, nil
}

func hostPrefixes() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the host's addresses: %w", err)
	}
	var prefixes []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes, nil
}

func overlaps(taken []netip.Prefix, p netip.Prefix) bool {
	for _, t := range taken {
		if t.Overlaps(p) {
			return true
		}
	}
	return false
}

// claimed says whether the index of this record is still this lab's.
func (s *state) claimed() bool {
	raw, err := os.ReadFile(claimPath(s.Index))
	return err == nil && string(raw) == s.Dir
}
