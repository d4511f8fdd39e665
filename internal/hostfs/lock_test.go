package hostfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLockExcludesAndNamesItsHolder(t *testing.T) {
	root := tree(t, map[string]string{"var/lib/": ""})
	held, err := root.Lock(t.Context(), LockPath, "bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	if got := mode(t, root, "/var/lib/proxyward"); got != fs.ModeDir|0o700 {
		t.Errorf("the state directory's mode is %v, want 0700", got)
	}

	short, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	_, err = root.Lock(short, LockPath, "agent")
	var locked *LockedError
	if !errors.As(err, &locked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("second Lock = %v, want *LockedError", err)
	}
	if locked.Holder.PID != os.Getpid() || locked.Holder.Verb != "bootstrap" || !strings.Contains(err.Error(), `"bootstrap"`) {
		t.Errorf("the holder is given as %+v in %q", locked.Holder, err)
	}

	// Who waits gets it once it is given back.
	got := make(chan error, 1)
	go func() {
		lock, err := root.Lock(t.Context(), LockPath, "agent")
		if err == nil {
			err = lock.Unlock()
		}
		got <- err
	}()
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("Lock after Unlock = %v", err)
	}
	if found, err := root.Exists(LockPath); err != nil || !found {
		t.Errorf("the lock file exists = %v, %v, want it kept", found, err)
	}
}

func TestLockedErrorWithoutHolder(t *testing.T) {
	err := &LockedError{Path: LockPath, Cause: context.Canceled}
	if !strings.Contains(err.Error(), "another Proxyward process") {
		t.Errorf("unexpected message %q", err)
	}
}

func TestLockRefusesLink(t *testing.T) {
	root := tree(t, map[string]string{"var/lib/proxyward/lock": "-> /etc/victim", "etc/victim": "victim's"})
	if _, err := root.Lock(t.Context(), LockPath, "agent"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("Lock = %v, want ErrNotRegular", err)
	}
}
