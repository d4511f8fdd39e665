package drift

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
	"github.com/proxyward/proxyward/runtimes"
)

// compareLoaded decides whether systemd must reload.
func (u *unitDiff) compareLoaded() {
	loaded := u.observed.Loaded
	switch {
	case loaded.Absent:
		return
	case loaded.Err != nil:
		u.unreadable("", loaded.Err.Error())
		return
	case loaded.LoadState != "loaded":
		u.unreadable(u.desired.Unit, fmt.Sprintf("systemd says that the unit is %s, so it does not run by what is configured here", loaded.LoadState))
		return
	}
	why := u.reloadReason(loaded)
	if why == "" {
		return
	}
	if u.reload == "" { // else the files themselves are the finding
		u.breaks(v1alpha1.ReasonReloadNeeded, loaded.FragmentPath, why)
		u.reload = why
	}
}

// reloadReason says what systemd has not loaded as the files have it, "" when nothing.
func (u *unitDiff) reloadReason(loaded LoadedLayer) string {
	if loaded.NeedDaemonReload {
		return "systemd says that its files changed since it read them"
	}
	if u.desired.Absent {
		for _, p := range loaded.DropInPaths {
			if _, ours := u.observed.Files.Ours[p]; ours && !u.observed.Files.Ours[p].Exists {
				return "systemd still has the drop-in that was removed"
			}
		}
		return ""
	}
	if u.observed.Files.Err != nil || u.shutOut() {
		return "" // a reload would not change what is loaded
	}
	for _, file := range u.desired.Files {
		if !isDropIn(file.Path) {
			continue
		}
		if !slices.Contains(loaded.DropInPaths, file.Path) {
			return "systemd has not read the drop-in"
		}
		for _, env := range environmentFilesOf(file.Content) {
			if !slices.Contains(loaded.EnvironmentFiles, env) {
				return "systemd has not read the drop-in's EnvironmentFile="
			}
		}
	}
	for _, name := range u.desired.Environment.Unset {
		if !slices.Contains(loaded.UnsetEnvironment, name) {
			return "systemd has not read the drop-in's UnsetEnvironment="
		}
	}
	return ""
}

// shutOut says that somebody's file keeps ours from being used at all.
func (u *unitDiff) shutOut() bool {
	return slices.ContainsFunc(u.observed.Files.Others, func(o OtherFile) bool { return o.Wins && len(o.Names) == 0 })
}

// environmentFilesOf returns the values of EnvironmentFile= in a drop-in of ours, which needs no
// general parser: it is our own rendering.
func environmentFilesOf(dropIn []byte) []string {
	var files []string
	for line := range bytes.Lines(dropIn) {
		if value, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("EnvironmentFile=")); ok && len(value) > 0 {
			files = append(files, string(value))
		}
	}
	return files
}

// compareProcess decides whether the daemon must be restarted.
func (u *unitDiff) compareProcess() {
	if u.observed.Loaded.Absent {
		if len(u.breaking) == 0 {
			u.unreadable(u.desired.Unit, "there is no systemd here, so only the files could be compared")
		}
		return
	}
	if u.observed.Loaded.Err == nil && u.observed.Loaded.LoadState != "loaded" {
		return // said already
	}
	process := u.observed.Process
	switch {
	case process.Err != nil:
		u.unreadable("", process.Err.Error())
		return
	case process.Running == runtimes.False:
		u.note(v1alpha1.ReasonInSync, u.desired.Unit, "the unit is stopped and stays so; it takes its environment when it is started")
		return
	case process.Running == runtimes.Unknown:
		if u.observed.Loaded.Err == nil {
			u.unreadable(u.desired.Unit, fmt.Sprintf("the unit is %s: nothing can be said of its process yet", state(u.observed.Loaded)))
		}
		return
	}
	var differs []string
	if u.desired.Absent {
		differs = u.remains()
	} else {
		differs = u.mismatches()
	}
	if len(differs) == 0 {
		return
	}
	why := "the running process was started with another environment: " + strings.Join(differs, ", ")
	u.breaks(v1alpha1.ReasonRestartNeeded, u.desired.Unit, why)
	if with := u.observed.Loaded.PropagatesRestart; len(with) > 0 {
		why += "; systemd restarts with it: " + strings.Join(with, ", ")
	}
	u.restart = why
}

// mismatches names what a restart would mend: the variables that the process has otherwise than
// desired, without those for which somebody else's file wins. It never holds a value.
func (u *unitDiff) mismatches() []string {
	if u.shutOut() {
		return nil
	}
	hopeless := map[string]bool{}
	for _, other := range u.observed.Files.Others {
		for _, name := range u.overriddenNames(other) {
			hopeless[name] = true
		}
	}
	var differs []string
	for _, want := range u.desired.Environment.Vars {
		have, set := lookup(u.observed.Process.Environ, want.Name)
		switch {
		case hopeless[want.Name]:
		case !set:
			differs = append(differs, want.Name+" is missing")
		case have != want.Value.Reveal():
			differs = append(differs, want.Name+" differs")
		}
	}
	for _, name := range u.desired.Environment.Unset {
		if _, set := lookup(u.observed.Process.Environ, name); set {
			differs = append(differs, name+" should not be set")
		}
	}
	return differs
}

// remains names the variables that the process still has from us: those with a value that Proxyward
// last gave (desired.Environment, when the caller knows it, or our environment file while it is
// there), and a certificate directory of ours.
func (u *unitDiff) remains() []string {
	given := slices.Clone(u.desired.Environment.Vars)
	for p, f := range u.observed.Files.Ours {
		if f.Exists && f.Owned && !isDropIn(p) && strings.HasPrefix(p, EnvDir+"/") {
			for _, a := range unitfile.ParseEnvFile(p, f.Content, unitfile.EnvDialectCurrent).Assignments {
				given = append(given, proxyenv.Var{Name: a.Name, Value: maskedSecret(a.Value)})
			}
		}
	}
	var remains []string
	for _, have := range u.observed.Process.Environ {
		ours := slices.ContainsFunc(given, func(v proxyenv.Var) bool {
			return v.Name == have.Name && v.Value.Reveal() == have.Value.Reveal()
		})
		if ours || strings.Contains(have.Value.Reveal(), CADir+"/") {
			remains = append(remains, have.Name+" is still set")
		}
	}
	return remains
}

// lookup returns the value of a variable.
func lookup(vars []proxyenv.Var, name string) (string, bool) {
	for _, v := range vars {
		if v.Name == name {
			return v.Value.Reveal(), true
		}
	}
	return "", false
}
