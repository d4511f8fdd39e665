package drift

import (
	"path"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/runtimes"
)

// Diff compares what is desired with what was observed and says what would have to be done:
// writes of what is referred to, then of drop-ins, removals, one reload, and restarts in the order
// in which the units are desired. A unit that was not observed is unknown.
//
// Whether a running daemon must be restarted is judged by its process environment alone. A stopped
// unit is never started. A variable for which somebody else's setting wins is reported and no
// restart is planned for it, because none would help.
func Diff(desired []Desired, observed []Observed, credentialsVersion string) Plan {
	byUnit := make(map[string]Observed, len(observed))
	for _, o := range observed {
		byUnit[o.Unit] = o
	}
	var (
		plan    Plan
		diffs   []*unitDiff
		refused []string
	)
	for _, d := range desired {
		d.Environment = runtimes.Scoped(d.Environment, d.Runtime.Prefix)
		o, ok := byUnit[d.Unit]
		u := &unitDiff{desired: d, observed: o}
		if ok {
			u.compare()
		} else {
			u.unreadable(d.Unit, "the unit was not observed")
		}
		diffs = append(diffs, u)
		refused = append(refused, u.refused...)
		plan.Units = append(plan.Units, u.verdict())
	}
	plan.Actions = order(diffs)
	plan.Refused = strings.Join(refused, "; ")
	plan.Hash = planHash(desired, credentialsVersion, plan.Actions)
	return plan
}

// unitDiff is the comparison of one unit.
type unitDiff struct {
	desired  Desired
	observed Observed

	writes, removes []Action
	// reload is why systemd must reload, "" when it need not.
	reload string
	// restart is why the unit must be restarted, "" when it need not.
	restart string

	// breaking findings say that the unit is not in sync; unknown ones that a layer is not known;
	// the rest is worth knowing.
	breaking, unknown, notes []v1alpha1.Finding
	refused                  []string
}

func (u *unitDiff) compare() {
	u.compareFiles()
	u.compareOthers()
	u.compareAbove()
	u.compareLoaded()
	u.compareProcess()
	if why := u.desired.Runtime.Restart.Refuse; why != "" && u.restart != "" {
		u.refused = append(u.refused, "restarting "+u.desired.Unit+": "+why)
	}
}

func (u *unitDiff) breaks(reason, path, message string) {
	u.breaking = append(u.breaking, v1alpha1.Finding{Reason: reason, Path: path, Message: message})
}

func (u *unitDiff) unreadable(path, message string) {
	u.unknown = append(u.unknown, v1alpha1.Finding{Reason: v1alpha1.ReasonUnreadable, Path: path, Message: message})
}

func (u *unitDiff) note(reason, path, message string) {
	u.notes = append(u.notes, v1alpha1.Finding{Reason: reason, Path: path, Message: message})
}

func (u *unitDiff) refuse(path, message string) {
	u.breaks(v1alpha1.ReasonFilesDrifted, path, message)
	u.refused = append(u.refused, path+": "+message)
}

// severity orders the findings that break the sync: what a repair cannot mend comes first.
var severity = map[string]int{
	v1alpha1.ReasonOverridden:    0,
	v1alpha1.ReasonFilesDrifted:  1,
	v1alpha1.ReasonReloadNeeded:  2,
	v1alpha1.ReasonRestartNeeded: 3,
}

func (u *unitDiff) verdict() UnitVerdict {
	slices.SortStableFunc(u.breaking, func(a, b v1alpha1.Finding) int {
		return severity[a.Reason] - severity[b.Reason]
	})
	v := UnitVerdict{
		Unit:         u.desired.Unit,
		Target:       u.desired.Target,
		InSync:       runtimes.True,
		Findings:     slices.Concat(u.breaking, u.unknown, u.notes),
		Restart:      u.desired.Runtime.Restart,
		State:        state(u.observed.Loaded),
		InvocationID: u.observed.Loaded.InvocationID,
	}
	switch {
	case len(u.breaking) > 0:
		v.InSync = runtimes.False
	case len(u.unknown) > 0:
		v.InSync = runtimes.Unknown
	}
	return v
}

// state is a unit's state as a person reads it.
func state(l LoadedLayer) string {
	switch {
	case l.Absent:
		return "no systemd"
	case l.Err != nil || l.ActiveState == "":
		return "unknown"
	case l.LoadState != "loaded":
		return l.LoadState
	case l.SubState == "" || l.SubState == l.ActiveState:
		return l.ActiveState
	}
	return l.ActiveState + " (" + l.SubState + ")"
}

// Reason is the verdict as a reason of RuntimeProxyInSync: that of the finding that weighs most,
// or InSync. A verdict that is unknown gives Unreadable.
func (v UnitVerdict) Reason() string {
	switch v.InSync {
	case runtimes.True:
		return v1alpha1.ReasonInSync
	case runtimes.Unknown:
		return v1alpha1.ReasonUnreadable
	}
	if len(v.Findings) == 0 {
		return v1alpha1.ReasonFilesDrifted
	}
	return v.Findings[0].Reason
}

// order puts the actions of all units in the order in which they are executed. Files that units
// share are written, and removed, once.
func order(diffs []*unitDiff) []Action {
	var files, dropIns, removeDropIns, removeFiles, restarts []Action
	var reload []string
	seen := map[string]bool{}
	for _, u := range diffs {
		for _, a := range u.writes {
			if seen[a.File.Path] {
				continue
			}
			seen[a.File.Path] = true
			if isDropIn(a.File.Path) {
				dropIns = append(dropIns, a)
			} else {
				files = append(files, a)
			}
		}
		for _, a := range u.removes {
			if isDropIn(a.File.Path) {
				removeDropIns = append(removeDropIns, a)
			} else {
				removeFiles = append(removeFiles, a)
			}
		}
		if u.reload != "" && !u.observed.Loaded.Absent {
			reload = append(reload, u.desired.Unit+": "+u.reload)
		}
		if u.restart != "" {
			restarts = append(restarts, Action{Kind: ActionRestart, Unit: u.desired.Unit, Why: u.restart})
		}
	}
	// What a unit keeps is not removed because another unit no longer needs it.
	wanted := wantedPaths(diffs)
	removeFiles = slices.DeleteFunc(removeFiles, func(a Action) bool {
		drop := wanted[a.File.Path] || seen[a.File.Path]
		seen[a.File.Path] = true
		return drop
	})
	actions := slices.Concat(files, dropIns, removeDropIns, removeFiles)
	if len(reload) > 0 {
		actions = append(actions, Action{Kind: ActionReload, Why: strings.Join(reload, "; ")})
	}
	return append(actions, restarts...)
}

// wantedPaths are the files that some unit must have.
func wantedPaths(diffs []*unitDiff) map[string]bool {
	wanted := map[string]bool{}
	for _, u := range diffs {
		if u.desired.Absent {
			continue
		}
		for _, f := range u.desired.Files {
			wanted[f.Path] = true
		}
	}
	return wanted
}

// isDropIn says whether a file is a drop-in of a unit, which systemd reads when it reloads.
func isDropIn(file string) bool {
	return strings.HasSuffix(path.Dir(file), ".d") && path.Ext(file) == ".conf"
}
