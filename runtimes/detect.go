package runtimes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// Found is one daemon that is installed on a host.
type Found struct {
	Adapter Adapter
	// Unit as systemd loads it, with its suffix.
	Unit string
	// Fragment is its unit file.
	Fragment string
	// Runtime is what its files say; empty when Refused.
	Runtime Runtime
	// Refused is not empty when the daemon is there and cannot be configured, and says why and
	// what to do.
	Refused string
}

// Detect finds the daemons of a host by their unit files. Without targets it looks for the
// container runtimes that are not experimental; a kubelet and the experimental ones are looked for
// when they are named. What is not installed is not in the answer.
//
// A file of a daemon that cannot be read or parsed is an error that names it.
func Detect(host HostFS, targets ...v1alpha1.Target) ([]Found, error) {
	var out []Found
	for _, a := range All() {
		if !wanted(a, targets) {
			continue
		}
		found, err := detect(host, a)
		if err != nil {
			return nil, fmt.Errorf("inspecting %s: %w", a.Target(), err)
		}
		out = append(out, found...)
	}
	return out, nil
}

func wanted(a Adapter, targets []v1alpha1.Target) bool {
	if len(targets) == 0 {
		return !a.Experimental() && a.Target() != v1alpha1.TargetKubelet
	}
	return slices.Contains(targets, a.Target())
}

func detect(host HostFS, a Adapter) ([]Found, error) {
	var out []Found
	seen := map[string]bool{}
	for _, name := range a.Units() {
		u, err := FindUnit(host, name)
		if err != nil {
			return nil, err
		}
		if u == nil || seen[u.Name] {
			continue // absent, or an alias of one that is listed
		}
		seen[u.Name] = true
		f := Found{Adapter: a, Unit: u.Name, Fragment: u.Fragment}
		if u.Masked {
			f.Refused = fmt.Sprintf("%s is masked by %s, so systemd never starts it; unmask it (systemctl unmask %s) or leave %s out of the targets", u.Name, u.Fragment, u.Name, a.Target())
		} else if f.Runtime, err = a.Inspect(host, u.Name); err != nil {
			var refused *RefusedError
			if !errors.As(err, &refused) {
				return nil, err
			}
			f.Refused = refused.Unit + ": " + refused.Why
		}
		out = append(out, f)
	}
	refused, err := unusable(host, a)
	return append(out, refused...), err
}

// unusable finds units that are the daemon's by their name and cannot be configured: those of a
// snap and templates.
func unusable(host HostFS, a Adapter) ([]Found, error) {
	var out []Found
	seen := map[string]bool{}
	for _, dir := range unitDirs() {
		entries, err := readDir(host, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			why := refusal(a, e)
			if why == "" || seen[e.Name()] {
				continue
			}
			seen[e.Name()] = true
			out = append(out, Found{Adapter: a, Unit: e.Name(), Fragment: path.Join(dir, e.Name()), Refused: why})
		}
	}
	return out, nil
}

func refusal(a Adapter, e fs.DirEntry) string {
	name := e.Name()
	if path.Ext(name) != ".service" || e.IsDir() {
		return ""
	}
	for _, unit := range a.Units() {
		stem := strings.TrimSuffix(unit, ".service")
		switch {
		case name == stem+"@.service":
			return fmt.Sprintf("%s is a template, of which any number of daemons may run; Proxyward configures one daemon by one unit: give it a unit called %s", name, unit)
		case strings.HasPrefix(name, "snap.") && snapRuns(name, stem):
			return fmt.Sprintf("%s belongs to a snap, which confines its daemon and brings its own environment; set the proxy with \"snap set system proxy.https=…\", or install the daemon as a package", name)
		}
	}
	return ""
}

// snapRuns reports whether a snap's unit, snap.<snap>.<app>.service, runs a daemon: the snap or one
// of its apps is called like it (snap.docker.dockerd, snap.microk8s.daemon-containerd).
func snapRuns(name, stem string) bool {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(name, "snap."), ".service"), ".")
	if len(parts) != 2 {
		return false
	}
	app := strings.TrimPrefix(parts[1], "daemon-")
	return app == stem || app == stem+"d" || parts[0] == stem && app == "daemon"
}
