package drift

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/runtimes"
)

// compareFiles plans the writes and removals.
func (u *unitDiff) compareFiles() {
	if err := u.observed.Files.Err; err != nil {
		u.unreadable("", err.Error())
		return
	}
	if u.desired.Absent {
		u.removeOurs()
		return
	}
	for _, file := range u.desired.Files {
		u.compareFile(file)
	}
}

// compareFile plans the write of one file. What is not ours stays, unless it has the very bytes.
func (u *unitDiff) compareFile(file runtimes.File) {
	found := u.observed.Files.Ours[file.Path]
	same := bytes.Equal(found.Content, file.Content)
	var why string
	switch {
	case found.Blocked:
		u.refuse(file.Path, "a file stands where a directory of this path belongs; move it away")
		return
	case !found.Exists:
		why = "it is missing"
	case !found.Regular:
		u.refuse(file.Path, fmt.Sprintf("found %s where a regular file belongs; nothing is followed or replaced, move it away", describe(found)))
		return
	case !found.Owned && !same:
		u.refuse(file.Path, "the file does not bear Proxyward's header, so it is somebody else's; move it away or adopt it")
		return
	case !same:
		why = "its content differs"
	case found.Mode.Perm() != file.Mode.Perm():
		why = fmt.Sprintf("its mode is %#o instead of %#o", found.Mode.Perm(), file.Mode.Perm())
	default:
		return
	}
	u.breaks(v1alpha1.ReasonFilesDrifted, file.Path, why)
	u.writes = append(u.writes, Action{Kind: ActionWrite, Unit: u.desired.Unit, File: file, Why: why})
	if isDropIn(file.Path) {
		u.reload = "its drop-in is written"
	}
}

func describe(f FileState) string {
	return "something of mode " + f.Mode.String()
}

// removeOurs plans the removal of every file that bears our header.
func (u *unitDiff) removeOurs() {
	paths := make([]string, 0, len(u.observed.Files.Ours))
	for p := range u.observed.Files.Ours {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		found := u.observed.Files.Ours[p]
		switch {
		case !found.Exists:
			continue
		case !found.Regular || !found.Owned:
			u.note(v1alpha1.ReasonForeign, p, "it does not bear Proxyward's header and is left alone")
			continue
		}
		const why = "the node is to be clean of Proxyward"
		u.breaks(v1alpha1.ReasonFilesDrifted, p, why)
		u.removes = append(u.removes, Action{Kind: ActionRemove, Unit: u.desired.Unit, File: runtimes.File{Path: p}, Why: why})
		if isDropIn(p) {
			u.reload = "its drop-in is removed"
		}
	}
}

// compareOthers reports somebody else's files: those that win, those that lose, and those that set
// what is left alone.
func (u *unitDiff) compareOthers() {
	if u.desired.Absent {
		return
	}
	for _, other := range u.observed.Files.Others {
		if u.overriddenBy(other) {
			u.breaks(v1alpha1.ReasonOverridden, other.Path, overrideMessage(other))
			continue
		}
		managed, foreign := u.split(other.Names)
		if len(managed) > 0 {
			u.note(v1alpha1.ReasonShadowed, other.Path, shadowMessage(other, managed))
		}
		if len(foreign) > 0 {
			u.note(v1alpha1.ReasonForeign, other.Path, fmt.Sprintf("it sets %s, which is kept and takes part in what the daemon trusts", strings.Join(foreign, ", ")))
		}
		if len(other.Names) == 0 && other.Problem != "" {
			u.note(v1alpha1.ReasonForeign, other.Path, other.Problem)
		}
	}
}

func overrideMessage(other OtherFile) string {
	if other.Problem != "" {
		return "it wins over Proxyward: " + other.Problem + "; change or remove it"
	}
	return fmt.Sprintf("it sets %s after Proxyward's file and wins; remove the lines, or rename the drop-in so that it sorts before %s",
		strings.Join(other.Names, ", "), DropInName)
}

func shadowMessage(other OtherFile, managed []string) string {
	message := fmt.Sprintf("it sets %s and loses to Proxyward's file; adopt or remove it", strings.Join(managed, ", "))
	if other.Problem != "" {
		message += "; " + other.Problem
	}
	if holdsSecret(other) && other.Mode.Perm()&0o044 != 0 {
		message += fmt.Sprintf("; it holds a password and is readable by others (mode %#o)", other.Mode.Perm())
	}
	return message
}

// holdsSecret says whether a value of the file has a masked part.
func holdsSecret(other OtherFile) bool {
	for _, v := range other.Vars {
		if v.Value.Masked() != v.Value.Reveal() {
			return true
		}
	}
	return false
}

// overriddenBy says whether a file decides a value that should be ours. One that wins with our own
// value does no harm now.
func (u *unitDiff) overriddenBy(other OtherFile) bool {
	return other.Wins && (len(other.Names) == 0 || len(u.overriddenNames(other)) > 0)
}

// overriddenNames are the variables that must have a value of ours and get another from this file.
// What must be unset stays so: UnsetEnvironment= comes after every file.
func (u *unitDiff) overriddenNames(other OtherFile) []string {
	if !other.Wins {
		return nil
	}
	var names []string
	for _, want := range u.desired.Environment.Vars {
		if !slices.Contains(other.Names, want.Name) {
			continue
		}
		value, sets := lookup(other.Vars, want.Name)
		if !sets || value != want.Value.Reveal() {
			names = append(names, want.Name)
		}
	}
	return names
}

// split tells the variables that Proxyward decides from those that it leaves alone.
func (u *unitDiff) split(names []string) (managed, foreign []string) {
	for _, name := range names {
		_, sets := lookup(u.desired.Environment.Vars, name)
		if sets || slices.Contains(u.desired.Environment.Unset, name) {
			managed = append(managed, name)
		} else {
			foreign = append(foreign, name)
		}
	}
	return managed, foreign
}

// compareAbove reports what wins over the environment.
func (u *unitDiff) compareAbove() {
	if err := u.observed.Above.Err; err != nil {
		u.unreadable("", err.Error())
	}
	if u.desired.Absent {
		return
	}
	for _, o := range u.observed.Above.Overrides {
		u.breaks(v1alpha1.ReasonOverridden, o.File, fmt.Sprintf("%s sets %s to %q, which wins over the environment; remove it from there", o.Key, o.Variable, o.Value))
	}
}
