package unitfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reasons why a line cannot be split into words. systemd keeps the words before the bad one and
// drops the rest of the line.
var (
	errEscape = errors.New("a backslash sequence that systemd does not know")
	errQuote  = errors.New("a quote that is never closed")
)

// QuoteWord writes a text as one word of a directive that is split into words, unquoted,
// C-unescaped and specifier-expanded, such as Environment=. Every systemd reads it as exactly
// text. It refuses what EnvLine refuses.
func QuoteWord(text string) (string, error) {
	if !ValidText(text) || HasControl(strings.ReplaceAll(text, "\t", "")) {
		return "", errors.New("quoting a word for a unit file: it holds a control character or is not valid UTF-8; remove that")
	}
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\t", `\t`).Replace(text)
	return `"` + escaped + `"`, nil
}

// Words splits a directive's value as systemd does (extract-word.c with unquoting and
// C-unescaping). On an error it returns the words before the bad one.
func Words(text string) ([]string, error) {
	var words []string
	for {
		text = strings.TrimLeft(text, whitespace)
		if text == "" {
			return words, nil
		}
		word, rest, err := firstWord(text)
		if err != nil {
			return words, err
		}
		words, text = append(words, word), rest
	}
}

func firstWord(text string) (word, rest string, err error) {
	var b []byte
	var quote byte
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\\':
			raw, size, ok := unescape(text[i+1:])
			if !ok {
				return "", "", errEscape
			}
			b = append(b, raw...)
			i += size
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && isOneOf(c, whitespace):
			return string(b), text[i:], nil
		default:
			b = append(b, c)
		}
		i++
	}
	if quote != 0 {
		return "", "", errQuote
	}
	return string(b), "", nil
}

// unescape reads one C escape after its backslash, as escape.c does: the bytes that it stands for
// and the number of characters that it takes.
func unescape(s string) (raw []byte, size int, ok bool) {
	if s == "" {
		return nil, 0, false
	}
	if i := strings.IndexByte(`abfnrtv\"'s`, s[0]); i >= 0 {
		return []byte{"\a\b\f\n\r\t\v\\\"' "[i]}, 1, true
	}
	switch s[0] {
	case 'x':
		n, ok := number(s[1:], 2, 16)
		return []byte{byte(n)}, 3, ok
	case 'u', 'U':
		digits := 4
		if s[0] == 'U' {
			digits = 8
		}
		n, ok := number(s[1:], digits, 16)
		if !ok || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) || !ValidText(string(rune(n))) {
			return nil, 0, false
		}
		return utf8.AppendRune(nil, rune(n)), 1 + digits, true
	}
	n, ok := number(s, 3, 8)
	return []byte{byte(n)}, 3, ok && n <= 0xFF
}

// number reads a number of exactly so many digits. Zero is refused: it would end the string.
func number(s string, digits, base int) (n uint64, ok bool) {
	if len(s) < digits {
		return 0, false
	}
	for i := range digits {
		d := strings.IndexByte("0123456789abcdef", s[i]|0x20)
		if d < 0 || d >= base || s[i] < '0' {
			return 0, false
		}
		n = n*uint64(base) + uint64(d)
	}
	return n, n > 0
}

// ParseEnvironment says what systemd makes of the value of one Environment= line of a unit. An
// empty value, which resets the list, gives nothing.
func ParseEnvironment(at Position, unit, value string) ([]Assignment, []Note) {
	words, err := Words(value)
	var out []Assignment
	var notes []Note
	for _, w := range words {
		a, note := assignment(at, unit, w)
		if note != nil {
			notes = append(notes, *note)
		}
		if a != nil {
			out = append(out, *a)
		}
	}
	if note := lineNote(at, err, len(words)); note != nil {
		notes = append(notes, *note)
	}
	return out, notes
}

func assignment(at Position, unit, word string) (*Assignment, *Note) {
	name, _, _ := strings.Cut(word, "=")
	if !ValidName(name) {
		name = ""
	}
	note := func(kind NoteKind, text string) *Note {
		return &Note{Position: at, Kind: kind, Name: name, Text: text}
	}
	x := expand(unit, word)
	if x.unknown {
		return nil, note(NoteDropped, "a % is followed by a letter or digit that is no specifier, so systemd drops the assignment; write %% for a percent sign, as in %%40")
	}
	got, value, found := strings.Cut(x.text, "=")
	switch {
	case !found:
		return nil, note(NoteDropped, "a word has no =, so systemd ignores it; quote a value that holds spaces, as in Environment=\"NAME=a b\"")
	case !ValidName(got):
		return nil, note(NoteDropped, badName(got))
	case !ValidText(value):
		return nil, note(NoteDropped, "the value is not valid UTF-8, so systemd ignores the assignment")
	}
	a := &Assignment{Name: got, Value: value, Inexact: x.inexact, Position: at}
	switch {
	case x.replaced && x.inexact:
		return a, note(NoteChanged, "a % is followed by a letter that is a specifier, which systemd replaces without a word, by something of the running host; write %% for a percent sign")
	case x.replaced:
		return a, note(NoteChanged, "a % is followed by a letter that is a specifier, which systemd replaces without a word; write %% for a percent sign")
	case strings.Contains(value, " ") && looksLikeSeveral(value):
		return a, note(NoteChanged, "several NAME=value pairs stand in one pair of quotes, so all after the first are part of its value; quote each pair by itself")
	}
	return a, nil
}

// looksLikeSeveral reports whether a value holds what was meant as further assignments.
func looksLikeSeveral(value string) bool {
	for w := range strings.FieldsSeq(value) {
		if name, _, found := strings.Cut(w, "="); found && ValidName(name) {
			return true
		}
	}
	return false
}

func lineNote(at Position, err error, taken int) *Note {
	if err == nil {
		return nil
	}
	return &Note{Position: at, Kind: NoteDropped, Text: fmt.Sprintf("systemd stops at %s and drops the rest of the line after %d of its words; write \\\\ for a backslash and close every quote", err, taken)}
}

// ParseNames says which names systemd takes from a UnsetEnvironment= or PassEnvironment= line.
// UnsetEnvironment= may also hold NAME=value, which removes the variable when it has that value.
func ParseNames(at Position, unit, value string) ([]string, []Note) {
	words, err := Words(value)
	var out []string
	var notes []Note
	for _, w := range words {
		x := expand(unit, w)
		name, _, _ := strings.Cut(x.text, "=")
		if x.unknown || !ValidName(name) || !ValidText(x.text) {
			notes = append(notes, Note{Position: at, Kind: NoteDropped, Text: "a word is no variable's name, so systemd ignores it; use letters, digits and underscores"})
			continue
		}
		out = append(out, x.text)
	}
	if note := lineNote(at, err, len(words)); note != nil {
		notes = append(notes, *note)
	}
	return out, notes
}
