package systemd

import (
	"context"
	"errors"
	"fmt"
)

// ResetFailed clears a unit's failed state and its start limit. A unit that is not loaded has
// neither: that is no error.
func (m *Manager) ResetFailed(ctx context.Context, unit string) error {
	conn, err := m.connected(ctx)
	if err != nil {
		return err
	}
	if err := conn.ResetFailedUnitContext(ctx, unit); err != nil {
		err = unitError("resetting the failed state of", unit, err)
		if !errors.Is(err, ErrNoSuchUnit) {
			return err
		}
	}
	return nil
}

// Enable makes units start at boot, as their [Install] sections say. Their files must be in place
// and loaded (Reload).
func (m *Manager) Enable(ctx context.Context, units ...string) error {
	conn, err := m.connected(ctx)
	if err != nil {
		return err
	}
	installs, _, err := conn.EnableUnitFilesContext(ctx, units, false, true)
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
	conn, err := m.connected(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.DisableUnitFilesContext(ctx, units, false); err != nil {
		return fmt.Errorf("disabling %q: %w", units, err)
	}
	return nil
}
