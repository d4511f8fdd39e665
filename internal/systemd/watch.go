package systemd

import (
	"context"
	"fmt"
	"path"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// EventKind is what happened.
type EventKind string

// The kinds of events.
const (
	// EventUnit: a property of the unit changed or a job of it ended.
	EventUnit EventKind = "unit"
	// EventReloaded: systemd read its unit files anew; any unit may have changed.
	EventReloaded EventKind = "reloaded"
	// EventReconnected: signals may have been missed; any unit may have changed.
	EventReconnected EventKind = "reconnected"
)

// Event says that a unit is worth looking at.
type Event struct {
	Kind EventKind
	// Unit, or "" for all.
	Unit string
}

// Waits between attempts to reconnect, doubling.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
)

const (
	unitPaths     = "/org/freedesktop/systemd1/unit/"
	systemdName   = "org.freedesktop.systemd1"
	managerPath   = "/org/freedesktop/systemd1"
	managerIface  = systemdName + ".Manager"
	signalJobOver = managerIface + ".JobRemoved"
	signalReload  = managerIface + ".Reloading"
	signalProps   = "org.freedesktop.DBus.Properties.PropertiesChanged"
	signalOwner   = "org.freedesktop.DBus.NameOwnerChanged"
)

// Watch tells when something happens to the units, until ctx ends; then the channel is closed. It
// reconnects by itself (systemd drops connections when it re-executes itself) and says so with
// EventReconnected. A reader that is slow gets fewer events, never a wrong picture: it must look.
func (m *Manager) Watch(ctx context.Context, units []string) <-chan Event {
	events := make(chan Event, 2*len(units)+2)
	go func() {
		defer close(events)
		for backoff, first := minBackoff, true; ctx.Err() == nil; first = false {
			conn, err := m.subscribe(ctx, units)
			if err == nil {
				backoff = minBackoff
				if !first {
					send(events, Event{Kind: EventReconnected})
				}
				follow(ctx, conn, units, events)
				_ = conn.Close() // it is given up either way
			}
			select {
			case <-ctx.Done():
			case <-time.After(backoff):
			}
			backoff = min(2*backoff, maxBackoff)
		}
	}()
	return events
}

// send drops the event when the reader is that far behind: enough events to make it look are in
// the channel already.
func send(events chan<- Event, e Event) {
	select {
	case events <- e:
	default:
	}
}

// subscribe returns a connection that receives the signals.
func (m *Manager) subscribe(ctx context.Context, units []string) (*dbus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, bus, err := dial(ctx, m.hostRoot)
	if err != nil {
		return nil, err
	}
	if bus { // the private socket sends everything and knows no matches
		if err := addMatches(ctx, conn, units); err != nil {
			_ = conn.Close() // the error tells more
			return nil, err
		}
	}
	manager := conn.Object(systemdName, managerPath)
	if err := manager.CallWithContext(ctx, managerIface+".Subscribe", 0).Err; err != nil {
		_ = conn.Close() // the error tells more
		return nil, fmt.Errorf("subscribing to systemd's signals: %w", err)
	}
	return conn, nil
}

func addMatches(ctx context.Context, conn *dbus.Conn, units []string) error {
	matches := [][]dbus.MatchOption{
		{dbus.WithMatchInterface(managerIface), dbus.WithMatchMember("Reloading")},
		{dbus.WithMatchInterface(managerIface), dbus.WithMatchMember("JobRemoved")},
		{dbus.WithMatchInterface("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, systemdName)},
	}
	for _, unit := range units {
		matches = append(matches, []dbus.MatchOption{
			dbus.WithMatchObjectPath(unitPath(unit)),
			dbus.WithMatchInterface("org.freedesktop.DBus.Properties"), dbus.WithMatchMember("PropertiesChanged"),
		})
	}
	for _, match := range matches {
		if err := conn.AddMatchSignalContext(ctx, match...); err != nil {
			return fmt.Errorf("asking the bus for signals: %w", err)
		}
	}
	return nil
}

// follow passes signals on until the connection or ctx ends.
func follow(ctx context.Context, conn *dbus.Conn, units []string, events chan<- Event) {
	byPath := make(map[dbus.ObjectPath]string, len(units))
	for _, unit := range units {
		byPath[unitPath(unit)] = unit
	}
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	for {
		select {
		case <-ctx.Done():
			return
		case signal, open := <-signals:
			if !open {
				return
			}
			event, over := translate(signal, byPath)
			if over {
				return
			}
			if event.Kind != "" {
				send(events, event)
			}
		}
	}
}

// translate makes an event of a signal; one of no interest has no kind. Over says that systemd
// changed its place on the bus, so that it no longer knows our subscription.
func translate(signal *dbus.Signal, byPath map[dbus.ObjectPath]string) (event Event, over bool) {
	switch signal.Name {
	case signalOwner:
		return Event{}, true
	case signalReload:
		// It comes with true when the reload begins and with false when it ended.
		if len(signal.Body) == 1 && signal.Body[0] == false {
			return Event{Kind: EventReloaded}, false
		}
	case signalProps:
		if unit, ok := byPath[signal.Path]; ok {
			return Event{Kind: EventUnit, Unit: unit}, false
		}
	case signalJobOver:
		if len(signal.Body) == 4 {
			name, _ := signal.Body[2].(string)
			if _, ok := byPath[unitPath(name)]; ok {
				return Event{Kind: EventUnit, Unit: name}, false
			}
		}
	}
	return Event{}, false
}

// unitPath is the object path of a unit.
func unitPath(unit string) dbus.ObjectPath {
	return dbus.ObjectPath(path.Join(unitPaths, sdbus.PathBusEscape(unit)))
}
