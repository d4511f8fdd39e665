package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proxyward/proxyward/agent/apply"
	"github.com/proxyward/proxyward/runtimes"
)

const (
	// minFree is the space below which a write may fail half-way, in bytes; our files are small.
	minFree = 4 << 20
	// immutable is the inode flag that chattr +i sets (statx(2)).
	immutable = unix.STATX_ATTR_IMMUTABLE
)

// checkWritable asks, without writing, whether files could be written where ours stand.
func checkWritable(_ context.Context, s *subject) []Result {
	dirs := []string{apply.StateDir}
	for _, u := range s.wanted.Units {
		for _, f := range u.Files {
			if dir := path.Dir(f.Path); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	var broken, seen []string
	for _, dir := range dirs {
		at, why := s.writable(dir)
		if why != "" {
			broken = append(broken, fmt.Sprintf("%s (for %s): %s", at, dir, why))
			continue
		}
		seen = append(seen, at)
	}
	if len(broken) > 0 {
		return []Result{fail("", Now, "make it writable for root (remount, chattr -i, free space), or run where the host's tree is mounted writable", broken...)}
	}
	slices.Sort(seen)
	return []Result{pass("", "can be written: "+strings.Join(slices.Compact(seen), ", "))}
}

// writable returns the nearest directory of a path that is there, and why it cannot be written.
func (s *subject) writable(dir string) (at, why string) {
	at = dir
	for at != "/" {
		info, err := s.host.Root.Stat(at)
		if err == nil && !info.IsDir() {
			return at, "it is not a directory"
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return at, err.Error()
		}
		at = path.Dir(at)
	}
	real, err := s.host.Root.Resolve(at)
	if err != nil {
		return at, err.Error()
	}
	var file unix.Statfs_t
	if err := unix.Statfs(real, &file); err != nil {
		return at, fmt.Sprintf("asking for its file system: %v", err)
	}
	if file.Flags&unix.ST_RDONLY != 0 {
		return at, "its file system is mounted read-only"
	}
	if err := unix.Access(real, unix.W_OK|unix.X_OK); err != nil {
		return at, err.Error()
	}
	if free := file.Bavail * uint64(file.Bsize); free < minFree {
		return at, fmt.Sprintf("only %d KiB are free", free>>10)
	}
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, real, 0, unix.STATX_BASIC_STATS, &x); err == nil && x.Attributes&immutable != 0 {
		return at, "it is immutable"
	}
	return at, ""
}

// checkModes judges the files that are there already: who may read them, and what SELinux makes of
// them.
func checkModes(_ context.Context, s *subject) []Result {
	var wrong, seen []string
	there := 0
	for _, u := range s.wanted.Units {
		for _, f := range u.Files {
			info, err := s.host.Root.Lstat(f.Path)
			if err != nil {
				continue // PW102 says which are missing
			}
			there++
			if info.Mode().Perm() != f.Mode.Perm() {
				wrong = append(wrong, fmt.Sprintf("%s has mode %#o instead of %#o", f.Path, info.Mode().Perm(), f.Mode.Perm()))
			}
			if label := s.label(f.Path); label != "" {
				if parent := s.label(path.Dir(f.Path)); typeOf(label) != typeOf(parent) && f.Path != runtimes.DropInPath(u.Unit) {
					wrong = append(wrong, fmt.Sprintf("%s has the SELinux label %s, its directory %s", f.Path, label, parent))
				}
			}
		}
	}
	if s.label("/etc") == "" {
		seen = append(seen, "this host has no SELinux labels")
	}
	if len(wrong) > 0 {
		return []Result{fail("", AtRestart, fixBootstrap+"; restorecon -R /etc/proxyward /etc/systemd/system mends labels", wrong...)}
	}
	if there == 0 {
		return []Result{pass("", append([]string{"none of Proxyward's files is there yet; environment files are written with mode 0600"}, seen...)...)}
	}
	return []Result{pass("", append([]string{fmt.Sprintf("%s with the right mode", count(there, "file"))}, seen...)...)}
}

// label is the SELinux label of a path; "" where there is none.
func (s *subject) label(hostPath string) string {
	real, err := s.host.Root.Resolve(path.Dir(hostPath))
	if err != nil {
		return ""
	}
	buf := make([]byte, 4096) // labels are below a page
	n, err := unix.Lgetxattr(filepath.Join(real, path.Base(hostPath)), "security.selinux", buf)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(buf[:n]), "\x00")
}

// typeOf is the third part of a label, by which SELinux decides.
func typeOf(label string) string {
	parts := strings.Split(label, ":")
	if len(parts) < 3 {
		return label
	}
	return parts[2]
}

// checkCertificates names what of others takes part in what the daemons trust. It is kept.
func checkCertificates(_ context.Context, s *subject) []Result {
	var seen, loose []string
	for _, u := range s.units() {
		for _, o := range u.observed.Files.Others {
			for _, name := range o.Names {
				if strings.Contains(name, "SSL_CERT_") {
					seen = append(seen, fmt.Sprintf("%s sets %s for %s, and it is kept", o.Path, name, u.Unit))
				}
			}
		}
	}
	const store = "/etc/ssl/certs"
	entries, err := s.host.Root.ReadDir(store)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Result{untested("", "make it readable", err.Error())}
	}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != "ca-certificates.crt" {
			loose = append(loose, path.Join(store, e.Name()))
		}
	}
	if len(loose) > 0 {
		loose = []string{"loose in the store, trusted and kept: " + strings.Join(loose, ", ")}
	}
	if len(seen) > 0 {
		return []Result{warn("", "move what they name into spec.proxy.trustedCA, or leave them knowingly: Go reads SSL_CERT_FILE instead of the host's bundle",
			append(seen, loose...)...)}
	}
	return []Result{pass("", append([]string{"nobody sets SSL_CERT_FILE or SSL_CERT_DIR for the units"}, loose...)...)}
}
