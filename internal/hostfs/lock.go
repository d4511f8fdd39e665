package hostfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// LockPath is the one lock of everything that changes a host: agent, bootstrap, remove, adopt and
// dead-man.
const LockPath = "/var/lib/proxyward/lock"

// lockPoll is how often a taken lock is tried again.
const lockPoll = 100 * time.Millisecond

// Holder says who holds a lock, for the message of whoever waits for it.
type Holder struct {
	// PID as the host sees it when the holder runs in the host's PID namespace.
	PID int `json:"pid"`
	// Verb that it runs (agent, bootstrap, …).
	Verb string `json:"verb"`
	// Since when.
	Since time.Time `json:"since"`
}

// LockedError says that the lock was still taken when the caller's time was over.
type LockedError struct {
	Path string
	// Holder as the lock file says; zero when it does not.
	Holder Holder
	// Cause is why the wait ended: context.DeadlineExceeded or context.Canceled.
	Cause error
}

// Error implements error.
func (e *LockedError) Error() string {
	who := "another Proxyward process"
	if e.Holder.PID != 0 {
		who = fmt.Sprintf("%q, process %d, since %s", e.Holder.Verb, e.Holder.PID, e.Holder.Since.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("taking lock %q: it is held by %s; wait for it to end (%v)", e.Path, who, e.Cause)
}

// Unwrap gives the cause.
func (e *LockedError) Unwrap() error { return e.Cause }

// Lock is a lock that is held. It ends with the process at the latest.
type Lock struct {
	file *os.File
	path string
}

// Lock takes the lock at a path, waiting until ctx ends; then it is a *LockedError. The directory
// is created with mode 0700 when it is missing. The lock file is never removed: removing it would
// let two processes hold locks on two files of the same name.
func (r *Root) Lock(ctx context.Context, hostPath, verb string) (*Lock, error) {
	fail := func(err error) error { return fmt.Errorf("taking lock %q: %w", hostPath, classify(err)) }
	if err := r.MkdirAll(path.Dir(path.Clean(hostPath)), 0o700); err != nil {
		return nil, err
	}
	real, err := r.entry(hostPath)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(real, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fail(fmt.Errorf("%w: found a symbolic link; remove it", ErrNotRegular))
	}
	if err != nil {
		return nil, fail(err)
	}
	lock := &Lock{file: f, path: hostPath}
	if err := lock.acquire(ctx); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	if err := lock.note(Holder{PID: os.Getpid(), Verb: verb, Since: time.Now()}); err != nil {
		_ = f.Close() // gives the lock back
		return nil, fail(err)
	}
	return lock, nil
}

// acquire tries until it has the lock or ctx ends.
func (l *Lock) acquire(ctx context.Context) error {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("taking lock %q: %w", l.path, err)
		}
		select {
		case <-ctx.Done():
			return &LockedError{Path: l.path, Holder: l.holder(), Cause: ctx.Err()}
		case <-tick.C:
		}
	}
}

// holder reads who wrote itself into the file. It is informative only: what cannot be read is a
// holder that is not known.
func (l *Lock) holder() Holder {
	buf := make([]byte, 1024)
	n, _ := l.file.ReadAt(buf, 0) // short reads end in io.EOF
	var h Holder
	if json.Unmarshal(buf[:n], &h) != nil {
		return Holder{}
	}
	return h
}

func (l *Lock) note(h Holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(append(data, '\n'), 0)
	return err
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error {
	err := l.file.Truncate(0)
	return errors.Join(err, l.file.Close())
}
