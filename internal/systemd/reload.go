package systemd

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

const (
	// reloadTimeout bounds a reload. On a host with thousands of units it takes some seconds.
	reloadTimeout = 90 * time.Second
	// reloadProbe is when systemd is asked whether it is through although its reply has not come.
	reloadProbe = 2 * time.Second
	// reloadGrace is how long the reply may then still be under way.
	reloadGrace = time.Second
)

// Reload has systemd read its unit files anew (daemon-reload). Over the private socket its reply
// may be lost; then a later question on the same connection, which systemd answers only after the
// reload, counts as the reply. It takes 90 seconds at most. Either way the caller must look with Show at what was loaded.
func (m *Manager) Reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	err := m.reloadOnce(ctx)
	if errors.Is(err, dbus.ErrClosed) {
		// Whether it was heard is not known; twice does no harm.
		err = m.reloadOnce(ctx)
	}
	if err != nil {
		return fmt.Errorf("reloading systemd: %w", err)
	}
	return nil
}

func (m *Manager) reloadOnce(ctx context.Context) error {
	conn, err := m.connected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reply := make(chan error, 1)
	go func() { reply <- conn.ReloadContext(ctx) }()
	return awaitReload(ctx, reply, func() <-chan error { return probe(ctx, conn) })
}

// probe asks systemd something small.
func probe(ctx context.Context, conn *sdbus.Conn) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := conn.SystemStateContext(ctx)
		answer <- err
	}()
	return answer
}

// awaitReload waits for the reply, or for the answer to a probe sent after the request.
func awaitReload(ctx context.Context, reply <-chan error, probe func() <-chan error) error {
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(reloadProbe):
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case err := <-probe():
		if err != nil {
			return err
		}
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(reloadGrace):
		return nil
	}
}
