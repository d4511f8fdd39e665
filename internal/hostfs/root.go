// Package hostfs reads and writes a host's files under the directory where that host's tree is
// seen: "/" on the host itself, a mount such as /host in a pod, any directory for a plain tree.
//
// Paths are those of the host: absolute, with symbolic links (absolute ones too) resolved inside
// the tree. Writes are atomic and durable, and replace regular files only.
//
// The resolution is not proof against someone who can change directories of the tree while a path
// is being resolved. Only root can do that where Proxyward writes (/etc, /var/lib), and root of
// the host needs no such trick.
package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"
)

// MaxFileSize is what ReadFile reads at most, in bytes. No file that Proxyward has to do with
// comes near it.
const MaxFileSize = 8 << 20

// Root is one host's tree.
type Root struct {
	dir string
	ops operations
}

// Open returns the tree at a directory of this process, which must exist.
func Open(dir string) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening host root %q: %w", dir, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("opening host root %q: %w", dir, bare(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("opening host root %q: %w: found %s; give the directory that holds the host's etc and var", dir, ErrNotDirectory, kind(info.Mode()))
	}
	return &Root{dir: abs, ops: realOperations()}, nil
}

// Dir returns the directory of the tree, as this process sees it.
func (r *Root) Dir() string { return r.dir }

// Resolve returns where this process finds a host path, every symbolic link resolved inside the
// tree. What does not exist is kept as it is, so a path may be resolved before it is created.
func (r *Root) Resolve(hostPath string) (string, error) {
	if !path.IsAbs(hostPath) {
		return "", fmt.Errorf("resolving %q: the path of a host's file must be absolute", hostPath)
	}
	real, err := securejoin.SecureJoin(r.dir, hostPath)
	if err != nil {
		return "", fmt.Errorf("resolving %q: %w", hostPath, bare(err))
	}
	return real, nil
}

// entry returns where this process finds the directory entry of a host path: links in the
// directories before it are resolved, the entry itself is not followed.
func (r *Root) entry(hostPath string) (string, error) {
	dir, base := path.Split(path.Clean(hostPath))
	if base == "" || base == "." {
		return "", fmt.Errorf("resolving %q: it names no file", hostPath)
	}
	real, err := r.Resolve(dir)
	if err != nil {
		return "", err
	}
	return filepath.Join(real, base), nil
}

// ReadFile returns the content of a regular file, links followed. A file larger than MaxFileSize
// is ErrTooLarge, anything but a regular file ErrNotRegular.
func (r *Root) ReadFile(hostPath string) ([]byte, error) {
	real, err := r.Resolve(hostPath)
	if err != nil {
		return nil, err
	}
	data, err := readRegular(real)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", hostPath, bare(err))
	}
	return data, nil
}

// readRegular reads a regular file. It opens without blocking, so that a FIFO in a file's place
// is an error rather than a hang.
func readRegular(real string) ([]byte, error) {
	f, err := os.OpenFile(real, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: found %s", ErrNotRegular, kind(info.Mode()))
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileSize {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, MaxFileSize)
	}
	return data, nil
}

// ReadDir returns the entries of a directory, sorted by name.
func (r *Root) ReadDir(hostPath string) ([]fs.DirEntry, error) {
	real, err := r.Resolve(hostPath)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil, fmt.Errorf("reading directory %q: %w", hostPath, classify(err))
	}
	return entries, nil
}

// Stat describes what a path leads to, links followed.
func (r *Root) Stat(hostPath string) (fs.FileInfo, error) {
	real, err := r.Resolve(hostPath)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("looking at %q: %w", hostPath, classify(err))
	}
	return info, nil
}

// Lstat describes the entry itself: a symbolic link is not followed. A path through something that
// is no directory is ErrNotDirectory.
func (r *Root) Lstat(hostPath string) (fs.FileInfo, error) {
	real, err := r.entry(hostPath)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return nil, fmt.Errorf("looking at %q: %w", hostPath, classify(err))
	}
	return info, nil
}

// Readlink returns the text of a symbolic link.
func (r *Root) Readlink(hostPath string) (string, error) {
	real, err := r.entry(hostPath)
	if err != nil {
		return "", err
	}
	target, err := os.Readlink(real)
	if err != nil {
		return "", fmt.Errorf("reading link %q: %w", hostPath, bare(err))
	}
	return target, nil
}

// Exists says whether a path leads to something. A failure to find out is an error.
func (r *Root) Exists(hostPath string) (bool, error) {
	_, err := r.Stat(hostPath)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
