package unitfile

import (
	"fmt"
	"strings"
)

// EnvLine returns the line, with its newline, that sets a variable in an EnvironmentFile= so that
// every systemd from 239 on reads exactly this value.
//
// The versions agree on less than they document: what a backslash does inside double quotes has
// had three meanings, and inside single quotes two. So quotes are used only around text that has
// no backslash, and all else is escaped outside of quotes, where a backslash has always meant the
// next character. A POSIX shell reads all three forms the same way.
//
// It refuses a name that systemd would not take and a value that some version cannot carry: NUL,
// line ends and every other control character but the tab, and text that is not UTF-8 to systemd.
// Errors name the variable and never its value.
func EnvLine(name, value string) (string, error) {
	if !ValidName(name) {
		return "", fmt.Errorf("writing the environment file: %q is not a variable's name to systemd; use letters, digits and underscores", name)
	}
	if !ValidText(value) {
		return "", fmt.Errorf("writing the environment file: the value of %s is not valid UTF-8, for which systemd would drop the whole file; correct the value", name)
	}
	if i := controlIndex(value); i >= 0 {
		return "", fmt.Errorf("writing the environment file: the value of %s holds a control character at byte %d, which not every systemd carries; remove it", name, i)
	}
	return name + "=" + quoteEnvValue(value) + "\n", nil
}

// controlIndex is where the first control character but a tab stands, or -1.
func controlIndex(text string) int {
	if isPlain(text) {
		return -1
	}
	return strings.IndexFunc(text, func(r rune) bool { return r != '\t' && isControl(r) })
}

func quoteEnvValue(value string) string {
	switch {
	case !strings.ContainsAny(value, "\"\\`$"):
		return `"` + value + `"`
	case !strings.ContainsAny(value, `'\`):
		return "'" + value + "'"
	}
	var b strings.Builder
	for i := range len(value) {
		if isSpecial(value[i]) {
			b.WriteByte('\\')
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// isSpecial reports whether an unquoted character means something to systemd or to a shell. The
// bytes of non-ASCII characters mean nothing to either.
func isSpecial(c byte) bool {
	plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= 0x80
	return !plain && !isOneOf(c, "_./:%@,=+-")
}
