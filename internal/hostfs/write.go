package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// operations are the steps of a write that may fail, so that a test can fail each.
type operations struct {
	create  func(name string) (*os.File, error)
	write   func(f *os.File, data []byte) error
	chmod   func(f *os.File, mode fs.FileMode) error
	chown   func(f *os.File) error
	sync    func(f *os.File) error
	rename  func(from, to string) error
	syncDir func(dir string) error
}

func realOperations() operations {
	return operations{
		create: func(name string) (*os.File, error) {
			return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		},
		write:   func(f *os.File, data []byte) error { _, err := f.Write(data); return err },
		chmod:   func(f *os.File, mode fs.FileMode) error { return f.Chmod(mode) },
		chown:   chownRoot,
		sync:    func(f *os.File) error { return f.Sync() },
		rename:  os.Rename,
		syncDir: syncDir,
	}
}

// chownRoot gives a file to root where the process may; elsewhere (a plain tree of an ordinary
// user) the file stays the user's.
func chownRoot(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(0, 0)
}

// syncDir makes the entries of a directory durable. Some file systems know no fsync of a
// directory and say EINVAL; they have nothing better to offer.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// temporary returns the name under which a file is written before it is renamed. It is a dotfile,
// which systemd ignores in drop-in directories, and always the same, so that what a killed writer
// left is taken away by the next write or Remove. Writers of one file hold the lock.
func temporary(real string) string {
	return filepath.Join(filepath.Dir(real), "."+filepath.Base(real)+".proxyward-tmp")
}

// WriteFile makes a file have exactly these bytes, this mode and root as its owner, and says
// whether anything had to change. Missing parents are created with mode 0755. At every moment,
// also after a power failure, the path holds either the old file or the new one.
//
// Only a regular file is replaced: a symbolic link, directory or device is ErrNotRegular and stays.
// A SELinux label is kept from the file that is replaced, or taken from the directory.
func (r *Root) WriteFile(hostPath string, data []byte, mode fs.FileMode) (changed bool, err error) {
	real, err := r.entry(hostPath)
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := r.MkdirAll(path.Dir(path.Clean(hostPath)), 0o755); err != nil {
			return false, err
		}
	case err != nil:
		return false, fmt.Errorf("writing %q: %w", hostPath, classify(err))
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("writing %q: %w: found %s; move it away, Proxyward replaces regular files only", hostPath, ErrNotRegular, kind(info.Mode()))
	default:
		same, err := isSame(real, info, data, mode)
		if err != nil {
			return false, fmt.Errorf("writing %q: comparing with what is there: %w", hostPath, classify(err))
		}
		if same {
			return false, nil
		}
	}
	if err := r.replace(real, data, mode); err != nil {
		return false, fmt.Errorf("writing %q: %w", hostPath, classify(err))
	}
	return true, nil
}

// isSame says whether a regular file already is what is wanted.
func isSame(real string, info fs.FileInfo, data []byte, mode fs.FileMode) (bool, error) {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	if info.Mode()&bits != mode&bits || info.Size() != int64(len(data)) {
		return false, nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && (st.Uid != 0 || st.Gid != 0) {
		return false, nil
	}
	old, err := readRegular(real)
	if errors.Is(err, ErrTooLarge) {
		return false, nil
	}
	return err == nil && bytes.Equal(old, data), err
}

// replace writes the temporary file and renames it over the path. A failure leaves the old file
// and no temporary one.
func (r *Root) replace(real string, data []byte, mode fs.FileMode) (err error) {
	tmp := temporary(real)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the rest of an earlier write: %w", bare(err))
	}
	f, err := r.ops.create(tmp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp) // the first error tells more
		}
	}()
	err = r.fill(f, real, data, mode)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := r.ops.rename(tmp, real); err != nil {
		return err
	}
	return r.ops.syncDir(filepath.Dir(real))
}

func (r *Root) fill(f *os.File, real string, data []byte, mode fs.FileMode) error {
	if err := r.ops.write(f, data); err != nil {
		return err
	}
	if err := r.ops.chown(f); err != nil {
		return err
	}
	// After chown, which clears the setuid bits.
	if err := r.ops.chmod(f, mode); err != nil {
		return err
	}
	copyLabel(f, real)
	return r.ops.sync(f)
}

// MkdirAll creates a directory and its missing parents with this mode, whatever the umask, each
// durable before it returns. Directories that exist keep their mode. A file in the way, and a
// symbolic link that leads nowhere, are ErrNotDirectory.
func (r *Root) MkdirAll(hostPath string, mode fs.FileMode) error {
	clean := path.Clean(hostPath)
	info, err := r.Stat(clean)
	if err == nil {
		if info.IsDir() {
			return nil
		}
		return fmt.Errorf("creating directory %q: %w: found %s; move it away", clean, ErrNotDirectory, kind(info.Mode()))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("creating directory %q: %w", clean, classify(err))
	}
	if parent := path.Dir(clean); parent != clean {
		if err := r.MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	real, err := r.entry(clean)
	if err != nil {
		return err
	}
	if err := os.Mkdir(real, mode); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating directory %q: %w: found a symbolic link that leads nowhere; remove it or create its target", clean, ErrNotDirectory)
		}
		return fmt.Errorf("creating directory %q: %w", clean, classify(err))
	}
	if err := os.Chmod(real, mode); err != nil {
		return fmt.Errorf("creating directory %q: %w", clean, classify(err))
	}
	if err := r.ops.syncDir(filepath.Dir(real)); err != nil {
		return fmt.Errorf("creating directory %q: making it durable: %w", clean, classify(err))
	}
	return nil
}

// Remove removes a regular file, an empty directory or a symbolic link (never what it leads to),
// with what an interrupted write left beside it, and makes that durable. What is not there is no
// error: removed is then false.
func (r *Root) Remove(hostPath string) (removed bool, err error) {
	real, err := r.entry(hostPath)
	if err != nil {
		return false, err
	}
	for _, name := range []string{temporary(real), real} {
		err := os.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("removing %q: %w", hostPath, classify(err))
		}
		removed = err == nil
		if !removed {
			continue
		}
		if err := r.ops.syncDir(filepath.Dir(real)); err != nil {
			return false, fmt.Errorf("removing %q: making it durable: %w", hostPath, classify(err))
		}
	}
	return removed, nil
}

// Rename moves a file within the tree and makes both directories durable. It replaces a regular
// file only.
func (r *Root) Rename(from, to string) error {
	fail := func(err error) error {
		return fmt.Errorf("moving %q to %q: %w", from, to, classify(err))
	}
	realFrom, err := r.entry(from)
	if err != nil {
		return err
	}
	realTo, err := r.entry(to)
	if err != nil {
		return err
	}
	info, err := os.Lstat(realTo)
	if err == nil && !info.Mode().IsRegular() {
		return fail(fmt.Errorf("%w: found %s", ErrNotRegular, kind(info.Mode())))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	if err := r.ops.rename(realFrom, realTo); err != nil {
		return fail(err)
	}
	// The new name first: after a power failure between the two there are both rather than none.
	for _, dir := range []string{filepath.Dir(realTo), filepath.Dir(realFrom)} {
		if err := r.ops.syncDir(dir); err != nil {
			return fail(fmt.Errorf("making it durable: %w", err))
		}
	}
	return nil
}
