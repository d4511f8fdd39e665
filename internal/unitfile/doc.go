// Package unitfile knows how systemd reads the text of unit files and of environment files, in
// both directions: it says what systemd makes of a text, and writes text that every systemd from
// 239 to 262 reads as the same bytes.
//
// It is pure: it reads no file but through the function that a caller gives it. What it reports
// names files, lines and variables and never a value, which may hold a password.
package unitfile

import "fmt"

// Position is a place in a file.
type Position struct {
	Path string
	// Line is counted from 1 as a person's editor counts it; 0 when the file as a whole is meant.
	Line int
}

// String returns "path:line", or the path alone.
func (p Position) String() string {
	if p.Line == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s:%d", p.Path, p.Line)
}

// Assignment is one variable that systemd takes from a text.
type Assignment struct {
	Name, Value string
	// Inexact says that the value holds a specifier that only the running host can replace; it
	// then stands in Value as it was written.
	Inexact bool
	Position
}

// Note is one place at which systemd does something else than the text seems to say.
type Note struct {
	Position
	Kind NoteKind
	// Name of the variable or of the directive that it is about, where one can be told.
	Name string
	// Text for a person: what systemd does, and what to write instead. It holds no value.
	Text string
}

// String returns the position and the text.
func (n Note) String() string { return n.Position.String() + ": " + n.Text }

// NoteKind tells notes apart.
type NoteKind string

// The kinds of notes.
const (
	// NoteDropped: systemd does not take what is written.
	NoteDropped NoteKind = "dropped"
	// NoteChanged: systemd takes something else than what is written.
	NoteChanged NoteKind = "changed"
	// NoteVersions: versions of systemd differ.
	NoteVersions NoteKind = "versions"
	// NoteUnknown: what systemd makes of it cannot be told from files alone.
	NoteUnknown NoteKind = "unknown"
)
