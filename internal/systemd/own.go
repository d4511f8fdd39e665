package systemd

import (
	"context"
	"errors"
	"fmt"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
)

// ResetFailed clears a unit's failed state and its start limit. A unit that is not loaded has
// neither: that is no error.
func (m *Manager) ResetFailed(ctx context.Context, unit string) error {
	err := m.call(ctx, func(ctx context.Context, conn *sdbus.Conn) error {
		return conn.ResetFailedUnitContext(ctx, unit)
	})
	if err == nil {
		return nil
	}
	if err = unitError("resetting the failed state of", unit, err); errors.Is(err, ErrNoSuchUnit) {
		return nil
	}
	return err
}

// Enable makes units start at boot, as their [Install] sections say. Their files must be in place
// and loaded (Reload).
func (m *Manager) Enable(ctx context.Context, units ...string) error {
	var installs bool
	err := m.call(ctx, func(ctx context.Context, conn *sdbus.Conn) (err error) {
		installs, _, err = conn.EnableUnitFilesContext(ctx, units, false, true)
		return err
	})
	if err != nil {
		return fmt.Errorf("enabling %q: %w", units, err)
	}
	if !installs {
		return fmt.Errorf("enabling %q: the units have no [Install] section, so nothing would start them", units)
	}
	return nil
}

// Disable undoes Enable. Units that are not enabled, or not there, are no error.
func (m *Manager) Disable(ctx context.Context, units ...string) error {
	err := m.call(ctx, func(ctx context.Context, conn *sdbus.Conn) error {
		_, err := conn.DisableUnitFilesContext(ctx, units, false)
		return err
	})
	if err != nil {
		return fmt.Errorf("disabling %q: %w", units, err)
	}
	return nil
}
