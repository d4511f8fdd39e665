package systemd

import (
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"
)

func TestTranslateSignals(t *testing.T) {
	const unit = "my-unit@x.service"
	byPath := map[dbus.ObjectPath]string{unitPath(unit): unit}
	tests := map[string]struct {
		signal dbus.Signal
		want   Event
		over   bool
	}{
		"property of ours":     {dbus.Signal{Name: signalProps, Path: unitPath(unit)}, Event{EventUnit, unit}, false},
		"property of another":  {dbus.Signal{Name: signalProps, Path: unitPath("other.service")}, Event{}, false},
		"job of ours":          {dbus.Signal{Name: signalJobOver, Body: []any{uint32(1), dbus.ObjectPath("/j"), unit, "done"}}, Event{EventUnit, unit}, false},
		"job of another":       {dbus.Signal{Name: signalJobOver, Body: []any{uint32(1), dbus.ObjectPath("/j"), "other.service", "done"}}, Event{}, false},
		"malformed job":        {dbus.Signal{Name: signalJobOver, Body: []any{uint32(1)}}, Event{}, false},
		"reload begins":        {dbus.Signal{Name: signalReload, Body: []any{true}}, Event{}, false},
		"reload ends":          {dbus.Signal{Name: signalReload, Body: []any{false}}, Event{EventReloaded, ""}, false},
		"malformed reload":     {dbus.Signal{Name: signalReload}, Event{}, false},
		"systemd left the bus": {dbus.Signal{Name: signalOwner}, Event{}, true},
		"something else":       {dbus.Signal{Name: "org.example.Other"}, Event{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, over := translate(&test.signal, byPath)
			if got != test.want || over != test.over {
				t.Errorf("got %+v, %v, want %+v, %v", got, over, test.want, test.over)
			}
		})
	}
}

func TestConnectWithoutSystemd(t *testing.T) {
	if _, err := Connect(t.Context(), t.TempDir()); !errors.Is(err, ErrAbsent) {
		t.Errorf("Connect on a plain tree = %v, want ErrAbsent", err)
	}
}
