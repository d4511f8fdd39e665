package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Kinds of errors, for errors.Is. What does not exist is fs.ErrNotExist.
var (
	// ErrReadOnly: the file system is mounted read-only.
	ErrReadOnly = errors.New("read-only file system")
	// ErrNotRegular: something other than a regular file is where a file belongs.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotDirectory: something other than a directory is where a directory belongs.
	ErrNotDirectory = errors.New("not a directory")
	// ErrTooLarge: the file is larger than MaxFileSize.
	ErrTooLarge = errors.New("file too large")
)

// bare takes the path of this process off a system call's error: the message names the host's
// path instead.
func bare(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	var linkErr *os.LinkError
	if errors.As(err, &linkErr) {
		return linkErr.Err
	}
	return err
}

// classify gives the kinds above to the errors of system calls.
func classify(err error) error {
	err = bare(err)
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: make it writable, or mount the host's /etc and /var/lib read-write", ErrReadOnly)
	case errors.Is(err, unix.ENOTDIR):
		return ErrNotDirectory
	}
	return err
}

// kind names what stands somewhere, for a message.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "something of mode " + mode.String()
	}
}
