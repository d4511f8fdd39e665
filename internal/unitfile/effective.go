package unitfile

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// Source is the text of one file.
type Source struct {
	Path    string
	Content []byte
}

// Input is what a unit's environment is made of.
type Input struct {
	// Unit is its name, with the suffix, for specifiers.
	Unit string
	// Manager is the environment that the manager gives to every unit (DefaultEnvironment= in
	// system.conf), and what PassEnvironment= may pass.
	Manager []Assignment
	// Files are the unit's own file and then its drop-ins, in the order in which systemd applies
	// them.
	Files []Source
	// Read returns the content of an environment file; an absent one is fs.ErrNotExist.
	Read func(path string) ([]byte, error)
	// Dialect of the systemd that reads the environment files.
	Dialect EnvDialect
}

// Origin is the way by which a variable comes into an environment, the weakest first.
type Origin int

// The origins (exec_context, in the order of build_environment in exec-invoke.c).
const (
	FromManager Origin = iota
	FromEnvironment
	FromEnvironmentFile
)

// String names the directive.
func (o Origin) String() string {
	return [...]string{"DefaultEnvironment=", "Environment=", "EnvironmentFile="}[o]
}

// Setting is one assignment that takes part.
type Setting struct {
	Assignment
	Origin Origin
	// Via is where the EnvironmentFile= that named the file stands.
	Via Position
}

// Variable is one variable of a unit's environment.
type Variable struct {
	// Setting that wins. When Removed is set the process does not have the variable.
	Setting
	// Loses are the settings that it beats, the strongest first.
	Loses []Setting
	// Removed is where UnsetEnvironment= takes the variable away; nil when nothing does.
	Removed *Position
}

// EnvFileRef is one EnvironmentFile= that is in force.
type EnvFileRef struct {
	// File is the path that it names.
	File string
	// Optional: it was written with a -, so that systemd passes over a file that it cannot read.
	Optional bool
	// Read says that the file was found and could be read.
	Read bool
	Position
}

// Environment is what a unit's process would have, of what files say.
type Environment struct {
	// Variables sorted by name.
	Variables []Variable
	EnvFiles  []EnvFileRef
	Notes     []Note
	// Incomplete says that something could not be told from the files; see the notes.
	Incomplete bool
}

// Lookup returns a variable that the process would have.
func (e Environment) Lookup(name string) (Variable, bool) {
	i, found := slices.BinarySearchFunc(e.Variables, name, func(v Variable, n string) int { return strings.Compare(v.Name, n) })
	if !found || e.Variables[i].Removed != nil {
		return Variable{}, false
	}
	return e.Variables[i], true
}

// Effective says what environment systemd gives to a unit. Later assignments beat earlier ones;
// whatever an environment file sets beats every Environment=; UnsetEnvironment= comes last.
func Effective(in Input) Environment {
	e := effective{in: in, vars: map[string]*Variable{}}
	for _, f := range in.Files {
		u := ParseUnit(f.Path, f.Content)
		e.out.Notes = append(e.out.Notes, u.Notes...)
		e.out.Incomplete = e.out.Incomplete || u.Incomplete
		for _, d := range u.Directives {
			if d.Section == "Service" {
				e.take(d)
			}
		}
	}
	for _, a := range in.Manager {
		e.set(Setting{Assignment: a, Origin: FromManager})
	}
	for _, s := range e.environment {
		e.set(s)
	}
	for i := range e.out.EnvFiles {
		e.readEnvFile(&e.out.EnvFiles[i])
	}
	e.remove()
	for _, v := range e.vars {
		e.out.Variables = append(e.out.Variables, *v)
	}
	slices.SortFunc(e.out.Variables, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return e.out
}

type effective struct {
	in          Input
	environment []Setting
	unset       []unsetName
	vars        map[string]*Variable
	out         Environment
}

type unsetName struct {
	text string
	at   Position
}

func (e *effective) note(at Position, kind NoteKind, name, text string) {
	e.out.Notes = append(e.out.Notes, Note{Position: at, Kind: kind, Name: name, Text: text})
}

// take applies one directive of [Service]. An empty value resets the list that it belongs to.
func (e *effective) take(d Directive) {
	switch d.Key {
	case "Environment":
		if d.Value == "" {
			e.environment = nil
			return
		}
		list, notes := ParseEnvironment(d.Position, e.in.Unit, d.Value)
		for _, a := range list {
			e.environment = append(e.environment, Setting{Assignment: a, Origin: FromEnvironment})
		}
		e.out.Notes = append(e.out.Notes, notes...)
	case "EnvironmentFile":
		e.takeEnvFile(d)
	case "UnsetEnvironment":
		if d.Value == "" {
			e.unset = nil
			return
		}
		names, notes := ParseNames(d.Position, e.in.Unit, d.Value)
		for _, n := range names {
			e.unset = append(e.unset, unsetName{n, d.Position})
		}
		e.out.Notes = append(e.out.Notes, notes...)
	case "PassEnvironment":
		if d.Value != "" {
			e.note(d.Position, NoteUnknown, "", "variables are passed on from the manager's own environment, which files do not tell")
		}
	}
}

func (e *effective) takeEnvFile(d Directive) {
	if d.Value == "" {
		e.out.EnvFiles = nil
		return
	}
	file, optional := strings.CutPrefix(d.Value, "-")
	x := expand(e.in.Unit, file)
	switch {
	case x.unknown:
		e.note(d.Position, NoteDropped, "", "the path holds a % that begins no specifier, so systemd ignores the line")
	case !strings.HasPrefix(x.text, "/"):
		e.note(d.Position, NoteDropped, "", "the path is not absolute, so systemd ignores the line; the value is one path, without quotes")
	case x.inexact || strings.ContainsAny(x.text, "*?[{"):
		e.out.Incomplete = true
		e.note(d.Position, NoteUnknown, "", "the path holds a pattern or a specifier of the host, so which files it names is not told here")
	default:
		e.out.EnvFiles = append(e.out.EnvFiles, EnvFileRef{File: x.text, Optional: optional, Position: d.Position})
	}
}

func (e *effective) readEnvFile(ref *EnvFileRef) {
	content, err := e.in.Read(ref.File)
	switch {
	case err == nil:
		ref.Read = true
	case errors.Is(err, fs.ErrNotExist) && ref.Optional:
		return
	case ref.Optional:
		e.out.Incomplete = true
		e.note(ref.Position, NoteUnknown, "", "the file "+ref.File+" could not be read here; systemd would pass over a read error of its own without a word")
		return
	default:
		e.note(ref.Position, NoteDropped, "", "the file "+ref.File+" is absent or cannot be read, and systemd does not start the unit without it; create it, or write a - before its path")
		return
	}
	parsed := ParseEnvFile(ref.File, content, e.in.Dialect)
	e.out.Notes = append(e.out.Notes, parsed.Notes...)
	for _, a := range parsed.Assignments {
		e.set(Setting{Assignment: a, Origin: FromEnvironmentFile, Via: ref.Position})
	}
}

// set lets a setting win over those before it.
func (e *effective) set(s Setting) {
	v, found := e.vars[s.Name]
	if !found {
		e.vars[s.Name] = &Variable{Setting: s}
		return
	}
	v.Loses = slices.Insert(v.Loses, 0, v.Setting)
	v.Setting = s
}

func (e *effective) remove() {
	for _, u := range e.unset {
		name, value, exact := strings.Cut(u.text, "=")
		v, found := e.vars[name]
		if !found || exact && value != v.Value {
			continue
		}
		if v.Removed == nil {
			at := u.at
			v.Removed = &at
		}
	}
}
