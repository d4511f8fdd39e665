//go:build linux

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// MirrorEnv names the variable that gives the Debian mirror where it cannot be
// read from the host's apt sources.
const MirrorEnv = "PROXYWARD_LAB_MIRROR"

func rootPackages(full bool) []string {
	list := []string{
		"systemd", "systemd-sysv", "dbus", "containerd", "runc", "iproute2", "procps", "ca-certificates", "kmod", "mount",
	}
	if full {
		list = append(list, "docker.io", "containernetworking-plugins", "nftables", "iptables")
	}
	return list
}

// ensureRoot builds the node root of that kind if it is not in the cache. The
// caller holds the setup lock.
func ensureRoot(ctx context.Context, progress io.Writer, lock *os.File, g Generation, full bool) error {
	dir, err := rootPath(g, full)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for a node root: %w", err)
	}
	mirror, err := hostMirror()
	if err != nil {
		return err
	}
	// A build that was interrupted left its folder; the lock says nobody uses it.
	tmp := dir + ".building"
	if err := removeRoot(tmp); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("creating the cache folder: %w", err)
	}
	began := time.Now()
	say(progress, "building the %s root %s (once)", g, filepath.Base(dir))
	if err := mmdebstrap(ctx, progress, lock, g, full, tmp, mirror); err != nil {
		return errors.Join(err, removeRoot(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("storing the root: %w", err)
	}
	say(progress, "built %s in %.0f s", filepath.Base(dir), time.Since(began).Seconds())
	return nil
}

// removeRoot removes an unfinished root, and first what a killed mmdebstrap may
// have left mounted in it from the host.
func removeRoot(dir string) error {
	if err := unmountBelow(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing an unfinished root: %w", err)
	}
	return nil
}

// rootPath keys the root by all that decides its content.
func rootPath(g Generation, full bool) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	variant := "base"
	if full {
		variant = "full"
	}
	sum := sha256.Sum256([]byte(strings.Join(rootPackages(full), " ")))
	return filepath.Join(cache, fmt.Sprintf("root-%s-%s-%s", g, variant, hex.EncodeToString(sum[:4]))), nil
}

func mmdebstrap(ctx context.Context, progress io.Writer, lock *os.File, g Generation, full bool, dir, mirror string) error {
	args := []string{"--variant=minbase", "--include=" + strings.Join(rootPackages(full), ",")}
	if g == Sid {
		// Snapshots of unstable that a mirror serves may be older than their
		// Valid-Until date.
		args = append(args, `--aptopt=Acquire::Check-Valid-Until "false"`)
	}
	args = append(args, string(g), dir, mirror)
	var tail bytes.Buffer
	cmd := groupCommand(ctx, "mmdebstrap", args...)
	cmd.ExtraFiles = []*os.File{lock}
	out := progressLines(progress, &tail)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building the %s root with mmdebstrap: %w: %s", g, err, bytes.TrimSpace(tail.Bytes()))
	}
	return nil
}

// progressLines passes the interesting lines of apt and mmdebstrap on and keeps
// the end of all of them for an error.
func progressLines(progress io.Writer, tail *bytes.Buffer) io.Writer {
	return &lineFilter{progress: progress, tail: tail}
}

type lineFilter struct {
	progress io.Writer
	tail     *bytes.Buffer
	partial  []byte
}

func (f *lineFilter) Write(p []byte) (int, error) {
	f.tail.Write(p)
	if extra := f.tail.Len() - 2000; extra > 0 {
		f.tail.Next(extra)
	}
	f.partial = append(f.partial, p...)
	for {
		line, rest, found := bytes.Cut(f.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		f.partial = rest
		text := strings.TrimSpace(string(line))
		for _, prefix := range []string{"I: ", "Setting up ", "Unpacking ", "Need to get "} {
			if strings.HasPrefix(text, prefix) {
				say(f.progress, "  %s", text)
			}
		}
	}
}
