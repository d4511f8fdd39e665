package unitfile

import (
	"bytes"
	"strings"
)

// EnvDialect is one way in which systemd has read environment files.
type EnvDialect int

// The dialects, by the oldest and the newest version known to read so. The zero value is that of
// every supported systemd of today.
const (
	// EnvDialectCurrent (254 on): a comment ends with its line.
	EnvDialectCurrent EnvDialect = iota
	// EnvDialect252: as the current one, but a comment line that ends in a backslash swallows the
	// line after it.
	EnvDialect252
	// EnvDialect240: in double quotes a backslash escapes the double quote alone.
	EnvDialect240
	// EnvDialect239: in either kind of quotes a backslash escapes whatever follows.
	EnvDialect239
)

// EnvDialects lists all dialects, the current one first.
func EnvDialects() []EnvDialect {
	return []EnvDialect{EnvDialectCurrent, EnvDialect252, EnvDialect240, EnvDialect239}
}

// EnvFile is what systemd makes of an environment file.
type EnvFile struct {
	// Assignments in the order in which they stand. Of several with one name the last holds.
	Assignments []Assignment
	Notes       []Note
	// Unreadable says that systemd takes nothing from the file at all.
	Unreadable bool
}

// ParseEnvFile reads the text of an EnvironmentFile= as systemd does at a unit's start
// (env-file.c, and exec_context_load_environment for what is dropped afterwards).
func ParseEnvFile(path string, content []byte, dialect EnvDialect) EnvFile {
	s := envScanner{dialect: dialect, path: path, line: 1}
	if i := bytes.IndexByte(content, 0); i >= 0 {
		s.out.Notes = append(s.out.Notes, Note{
			Position: Position{path, 1 + bytes.Count(content[:i], []byte("\n"))}, Kind: NoteDropped,
			Text: "the file holds a NUL byte, at which systemd stops reading or refuses the file; remove it",
		})
		s.out.Unreadable = true
		return s.out
	}
	for i, c := range content {
		s.step(c)
		if c == '\n' || c == '\r' && (i+1 == len(content) || content[i+1] != '\n') {
			s.line++
		}
	}
	s.finish()
	if s.out.Unreadable {
		s.out.Assignments = nil
	}
	return s.out
}

type envState int

const (
	preKey envState = iota
	inKey
	preValue
	inValue
	valueEscape
	singleQuoted
	singleEscape
	doubleQuoted
	doubleEscape
	inComment
	commentEscape
)

// envScanner is the state machine, a byte at a time.
type envScanner struct {
	dialect EnvDialect
	path    string
	line    int // line of the byte being read
	start   int // line on which the key began

	state envState
	key   []byte
	value []byte
	// spaceAt is where the run of unquoted spaces at the value's end begins, or -1.
	spaceAt int

	out EnvFile
}

func (s *envScanner) step(c byte) {
	eol := isOneOf(c, newlines)
	switch s.state {
	case preKey:
		s.beginLine(c)
	case inKey:
		switch {
		case eol:
			s.dropLine()
		case c == '=':
			s.state, s.value, s.spaceAt = preValue, nil, -1
		default:
			s.key = append(s.key, c)
		}
	case preValue:
		switch {
		case eol:
			s.push()
		case c == '\'':
			s.state = singleQuoted
		case c == '"':
			s.state = doubleQuoted
		case c == '\\':
			s.state = valueEscape
		case !isOneOf(c, whitespace):
			s.state = inValue
			s.value = append(s.value, c)
		}
	case inValue:
		s.stepValue(c, eol)
	case valueEscape:
		s.state = inValue
		if !eol {
			s.value = append(s.value, c)
		}
	case singleQuoted, doubleQuoted, singleEscape, doubleEscape:
		s.stepQuoted(c, eol)
	case inComment:
		switch {
		case c == '\\':
			s.state = commentEscape
		case eol:
			s.state = preKey
		}
	case commentEscape:
		s.state = inComment
		if eol && s.dialect == EnvDialectCurrent {
			s.state = preKey
		}
	}
}

func (s *envScanner) beginLine(c byte) {
	switch {
	case isOneOf(c, comments):
		s.state = inComment
	case !isOneOf(c, whitespace):
		s.state, s.start, s.key = inKey, s.line, append(s.key[:0], c)
	}
}

func (s *envScanner) stepValue(c byte, eol bool) {
	switch {
	case eol:
		s.push()
	case c == '\\':
		s.state, s.spaceAt = valueEscape, -1
	default:
		switch {
		case !isOneOf(c, whitespace):
			s.spaceAt = -1
		case s.spaceAt < 0:
			s.spaceAt = len(s.value)
		}
		s.value = append(s.value, c)
	}
}

func (s *envScanner) stepQuoted(c byte, eol bool) {
	switch s.state {
	case singleQuoted:
		switch {
		case c == '\'':
			s.state = preValue
		case c == '\\' && s.dialect == EnvDialect239:
			s.state = singleEscape
		default:
			s.value = append(s.value, c)
		}
	case doubleQuoted:
		switch c {
		case '"':
			s.state = preValue
		case '\\':
			s.state = doubleEscape
		default:
			s.value = append(s.value, c)
		}
	case singleEscape:
		s.state = singleQuoted
		if !eol {
			s.value = append(s.value, c)
		}
	case doubleEscape:
		s.state = doubleQuoted
		s.unescapeDouble(c, eol)
	}
}

func (s *envScanner) unescapeDouble(c byte, eol bool) {
	escapable := "\"\\`$"
	swallowed := c == '\n'
	switch s.dialect {
	case EnvDialect239:
		if !eol {
			s.value = append(s.value, c)
		}
		return
	case EnvDialect240:
		escapable, swallowed = `"`, eol
	}
	switch {
	case isOneOf(c, escapable):
		s.value = append(s.value, c)
	case !swallowed:
		s.value = append(s.value, '\\', c)
	}
}

// finish takes what the last line holds when no newline ends it.
func (s *envScanner) finish() {
	switch s.state {
	case inKey:
		s.dropLine()
	case singleQuoted, doubleQuoted, singleEscape, doubleEscape:
		s.note(NoteChanged, string(bytes.TrimRight(s.key, whitespace)), "a quote is opened and never closed, so the value runs to the end of the file; close it")
		s.push()
	case preValue, inValue, valueEscape:
		s.push()
	}
}

func (s *envScanner) note(kind NoteKind, name, text string) {
	s.out.Notes = append(s.out.Notes, Note{Position: Position{s.path, s.start}, Kind: kind, Name: name, Text: text})
}

func (s *envScanner) dropLine() {
	s.state = preKey
	s.note(NoteDropped, "", "the line has no =, so systemd ignores it; write NAME=value")
}

// push takes one assignment, unless systemd would not.
func (s *envScanner) push() {
	if s.state == inValue && s.spaceAt >= 0 {
		s.value = s.value[:s.spaceAt]
	}
	s.state = preKey
	name, value := string(bytes.TrimRight(s.key, whitespace)), string(s.value)
	switch {
	case !ValidText(name) || !ValidText(value):
		s.out.Unreadable = true
		s.note(NoteDropped, "", "the line is not valid UTF-8, so systemd takes nothing from this file; correct the line")
	case !ValidName(name):
		s.note(NoteDropped, "", badName(name))
	default:
		s.out.Assignments = append(s.out.Assignments, Assignment{Name: name, Value: value, Position: Position{s.path, s.start}})
	}
}

// badName says why a name is not taken. Only what is certain to be no secret is quoted.
func badName(name string) string {
	switch {
	case strings.HasPrefix(name, byteOrderMark):
		return "the line begins with a byte order mark, so its name is none to systemd and it is ignored; save the file without one"
	case strings.HasPrefix(name, "export "):
		return "the line begins with the shell's export, so systemd ignores it; write NAME=value alone"
	case strings.IndexAny(name, "\"'\u201c\u201d") == 0:
		return "the quote stands before the name, so systemd ignores the line; quote the value alone, with straight quotes"
	default:
		return "what stands before the = is no variable's name to systemd, so the line is ignored; use letters, digits and underscores"
	}
}
