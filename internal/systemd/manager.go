// Package systemd asks a host's systemd what it loaded, reloads it, restarts units with proof that
// a new process runs, and starts, stops, enables and disables units of our own. It also tells when
// something happens to units.
//
// It speaks D-Bus only and reads no files. A host whose tree is mounted elsewhere is reached
// through the sockets in that tree.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// Sockets below the host's root. The system bus is asked first: over it systemd's replies survive
// a reload. The private socket is systemd's own, is there before the bus, and accepts root only.
const (
	busSocket     = "/run/dbus/system_bus_socket"
	privateSocket = "/run/systemd/private"
)

const (
	// dialTimeout bounds connecting, with authentication and subscription.
	dialTimeout = 5 * time.Second
	// callTimeout bounds one question. It leaves room for a reload, during which systemd is silent.
	callTimeout = 10 * time.Second
)

// ErrAbsent says that there is no systemd to ask below the host's root.
var ErrAbsent = errors.New("no systemd to ask")

// Manager is one host's systemd. It dials again when its connection was lost, as it is when
// systemd re-executes itself. It is safe for concurrent use.
type Manager struct {
	hostRoot string

	mu   sync.Mutex
	conn *sdbus.Conn
}

// Connect reaches the systemd of the host whose tree is at hostRoot ("/" on the host itself). The
// context bounds the dialling only. No socket at all is ErrAbsent.
func Connect(ctx context.Context, hostRoot string) (*Manager, error) {
	m := &Manager{hostRoot: hostRoot}
	if _, err := m.connected(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Close ends the connection.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disconnect()
}

// disconnect is called with the lock held.
func (m *Manager) disconnect() {
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
}

// drop gives up a connection, unless another has taken its place already.
func (m *Manager) drop(conn *sdbus.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn == conn {
		m.disconnect()
	}
}

// call asks something that systemd answers at once. A connection on which it does not is given up:
// while systemd re-executes itself, a connection can be accepted and never be served.
func (m *Manager) call(ctx context.Context, ask func(ctx context.Context, conn *sdbus.Conn) error) error {
	conn, err := m.connected(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = ask(bounded, conn)
	if bounded.Err() != nil && ctx.Err() == nil {
		m.drop(conn)
		return fmt.Errorf("waiting %v for systemd's answer: %w", callTimeout, err)
	}
	return err
}

// connected returns a connection that is up and subscribed to signals.
func (m *Manager) connected(ctx context.Context) (*sdbus.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && m.conn.Connected() {
		return m.conn, nil
	}
	m.disconnect()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// The library's first questions know no deadline: closing the connection ends them.
	var stops []func() bool
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	conn, err := sdbus.NewConnection(func() (*dbus.Conn, error) {
		conn, _, err := dial(ctx, m.hostRoot)
		if err == nil {
			stops = append(stops, context.AfterFunc(ctx, func() { _ = conn.Close() }))
		}
		return conn, err
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to systemd below %q: %w", m.hostRoot, err)
	}
	// Without it systemd does not say when a job ends.
	if err := conn.Subscribe(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("subscribing to systemd's signals: %w", err)
	}
	m.conn = conn
	return conn, nil
}

// dial returns an authenticated connection, and whether it goes over the system bus.
func dial(ctx context.Context, hostRoot string) (conn *dbus.Conn, bus bool, err error) {
	conn, busErr := dialSocket(ctx, filepath.Join(hostRoot, busSocket))
	if busErr == nil {
		if busErr = conn.Hello(); busErr == nil {
			return conn, true, nil
		}
		_ = conn.Close() // Hello's error tells more
	}
	conn, privateErr := dialSocket(ctx, filepath.Join(hostRoot, privateSocket))
	if privateErr == nil {
		return conn, false, nil
	}
	if errors.Is(busErr, os.ErrNotExist) && errors.Is(privateErr, os.ErrNotExist) {
		return nil, false, fmt.Errorf("%w: neither %q nor %q is there", ErrAbsent, busSocket, privateSocket)
	}
	return nil, false, errors.Join(
		fmt.Errorf("dialling %q: %w", busSocket, busErr),
		fmt.Errorf("dialling %q: %w", privateSocket, privateErr),
	)
}

// dialSocket connects and authenticates. The context given to a D-Bus connection would be its
// life, so it gets none. The library dials itself: given a connection that was dialled elsewhere, it
// panics when that is closed in the middle of a message (godbus 5.2).
func dialSocket(ctx context.Context, path string) (*dbus.Conn, error) {
	conn, err := dbus.Dial("unix:path=" + dbus.EscapeBusAddressValue(path))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends a hung handshake
	defer stop()
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
