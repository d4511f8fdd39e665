package unitfile

import (
	"strings"
	"unicode/utf8"
)

// The character classes of systemd's string-util.h.
const (
	whitespace = " \t\n\r"
	newlines   = "\n\r"
	comments   = "#;"
)

const byteOrderMark = "\uFEFF"

// ValidName reports whether systemd takes a name as that of a variable: ASCII letters, digits and
// underscores, no digit first (env-util.c).
func ValidName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// ValidText reports whether text is UTF-8 to systemd, which refuses the code points that Unicode
// reserves for no character as well (utf8.c). One such value costs a whole environment file.
func ValidText(text string) bool {
	if isPlain(text) {
		return true
	}
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if 0xFDD0 <= r && r <= 0xFDEF || r&0xFFFE == 0xFFFE {
			return false
		}
	}
	return true
}

// HasControl reports whether text holds a control character: C0, DEL or C1, or one of the two
// separators that Unicode has for lines and paragraphs.
func HasControl(text string) bool { return !isPlain(text) && strings.ContainsFunc(text, isControl) }

// isPlain reports whether text is printable ASCII, which most is and which is quickly found out.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] >= 0x7F {
			return false
		}
	}
	return true
}

func isControl(r rune) bool {
	return r < 0x20 || 0x7F <= r && r <= 0x9F || r == 0x2028 || r == 0x2029
}

func isOneOf(c byte, class string) bool { return strings.IndexByte(class, c) >= 0 }

// strip takes systemd's whitespace from both ends.
func strip(s string) string { return strings.Trim(s, whitespace) }
