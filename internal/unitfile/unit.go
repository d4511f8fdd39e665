package unitfile

import (
	"bytes"
	"fmt"
	"strings"
)

// Directive is one Key=Value that systemd takes from a unit file or drop-in.
type Directive struct {
	Section, Key, Value string
	Position
}

// Unit is what systemd makes of the text of one unit file or drop-in.
type Unit struct {
	Directives []Directive
	Notes      []Note
	// Incomplete says that systemd gives up at some line and does not read what follows.
	Incomplete bool
}

// Values returns the values that the directives of a section give to a key, in order, after the
// last empty one, which resets a list.
func (u Unit) Values(section, key string) []string {
	var out []string
	for _, d := range u.Directives {
		switch {
		case d.Section != section || d.Key != key:
		case d.Value == "":
			out = nil
		default:
			out = append(out, d.Value)
		}
	}
	return out
}

// ParseUnit reads the text of a unit file or drop-in as systemd does (conf-parser.c): a line ends
// at \n and at \r, a backslash at its end continues it, comments may stand between the two.
func ParseUnit(path string, content []byte) Unit {
	p := unitParser{path: path}
	if bytes.Contains(content, []byte("\r\n")) {
		p.note(0, NoteChanged, "", "the file has Windows line ends; systemd takes each \\r as a line end of its own, so its lines are read but a continuation (backslash at the end) is broken; save it with \\n")
	}
	for _, l := range physicalLines(content) {
		if !p.line(l.number, l.text) {
			p.out.Incomplete = true
			return p.out
		}
	}
	if p.continued != nil && !p.logical(p.started, *p.continued) {
		p.out.Incomplete = true
	}
	return p.out
}

type physicalLine struct {
	number int
	text   string
}

// physicalLines splits at \n, \r, NUL and \r\n, as read_line does, and counts as editors do: a lone
// \r does not begin a new line on a screen.
func physicalLines(content []byte) []physicalLine {
	var lines []physicalLine
	number, start := 1, 0
	for i := 0; i <= len(content); i++ {
		if i < len(content) && content[i] != '\n' && content[i] != '\r' && content[i] != 0 {
			continue
		}
		if i > start || i < len(content) {
			lines = append(lines, physicalLine{number, string(content[start:i])})
		}
		if i < len(content) && content[i] == '\r' && i+1 < len(content) && content[i+1] == '\n' {
			i++
		}
		if i < len(content) && content[i] == '\n' {
			number++
		}
		start = i + 1
	}
	return lines
}

type unitParser struct {
	path    string
	section string
	// skipped: the current section is none that holds directives of a unit.
	headed    bool
	bomSeen   bool
	continued *string
	started   int
	out       Unit
}

func (p *unitParser) note(line int, kind NoteKind, name, text string) {
	p.out.Notes = append(p.out.Notes, Note{Position: Position{p.path, line}, Kind: kind, Name: name, Text: text})
}

// line takes one physical line and reports whether systemd would go on reading.
func (p *unitParser) line(number int, text string) bool {
	if t := strings.TrimLeft(text, whitespace); t != "" && isOneOf(t[0], comments) {
		return true
	}
	if !p.bomSeen && strings.HasPrefix(text, byteOrderMark) {
		p.bomSeen = true
		text = text[len(byteOrderMark):]
		p.note(number, NoteVersions, "", "the line begins with a byte order mark; systemd 239 to 262 skip one, other readers of the file do not; save the file without it")
	}
	whole := text
	if p.continued != nil {
		whole = *p.continued + text
	} else {
		p.started = number
	}
	if endsEscaped(whole) {
		whole = whole[:len(whole)-1] + " "
		p.continued = &whole
		return true
	}
	p.continued = nil
	return p.logical(p.started, whole)
}

// endsEscaped reports whether the last character is a backslash that is not itself escaped.
func endsEscaped(s string) bool {
	escaped := false
	for i := range len(s) {
		escaped = !escaped && s[i] == '\\'
	}
	return escaped
}

func (p *unitParser) logical(number int, text string) bool {
	text = strip(text)
	switch {
	case text == "":
		return true
	case !ValidText(text):
		p.note(number, NoteDropped, "", "the line is not valid UTF-8; systemd reads neither it nor what follows in this file")
		return false
	case text[0] == '[':
		return p.header(number, text)
	}
	key, value, found := strings.Cut(text, "=")
	key, value = strip(key), strip(value)
	switch {
	case !p.headed:
		p.note(number, NoteDropped, key, "the line stands before any section header, so systemd ignores it; write [Service] above it")
	case !found:
		p.note(number, NoteDropped, "", "the line has no =, so systemd ignores it")
	case key == "":
		p.note(number, NoteDropped, "", "nothing stands before the =, so systemd ignores the line")
	default:
		p.noteKey(number, key)
		p.out.Directives = append(p.out.Directives, Directive{Section: p.section, Key: key, Value: value, Position: Position{p.path, number}})
	}
	return true
}

func (p *unitParser) header(number int, text string) bool {
	if text[len(text)-1] != ']' {
		p.note(number, NoteDropped, "", "the section header does not end with ], so systemd reads neither it nor what follows in this file")
		return false
	}
	p.section, p.headed = text[1:len(text)-1], true
	for _, known := range []string{"Unit", "Service", "Install"} {
		if p.section != known && strings.EqualFold(strip(p.section), known) {
			p.note(number, NoteDropped, p.section, fmt.Sprintf("systemd knows no such section and ignores what it holds; write [%s]", known))
		}
	}
	return true
}

// noteKey notes a key that is nearly one of those that matter here, or one in the wrong section.
func (p *unitParser) noteKey(number int, key string) {
	for _, known := range environmentKeys() {
		switch {
		case key != known && strings.EqualFold(key, known):
			p.note(number, NoteDropped, key, fmt.Sprintf("systemd tells capitals apart and ignores this key; write %s", known))
		case key == known && p.section != "Service":
			p.note(number, NoteDropped, key, "the key stands outside of [Service], where systemd does not take it; move it there")
		case ValidName(key) && (strings.HasSuffix(strings.ToUpper(key), "_PROXY")) && p.section == "Service":
			p.note(number, NoteDropped, key, fmt.Sprintf("a variable stands by itself, so systemd ignores it; write Environment=\"%s=…\"", key))
			return
		}
	}
}

func environmentKeys() []string {
	return []string{"Environment", "EnvironmentFile", "UnsetEnvironment", "PassEnvironment"}
}
