package drift

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/proxyward/proxyward/internal/proxyenv"
	"github.com/proxyward/proxyward/internal/unitfile"
)

// MaxDiff is the size of a masked diff at most, in bytes: what NodeProxy's status takes.
const MaxDiff = 8 << 10

// absentFile is the name of a file that is not there, in a diff.
const absentFile = "/dev/null"

// MaskedDiff shows what a plan's writes and removals change, as a unified diff with secrets masked
// and control characters escaped. What exceeds MaxDiff is cut, and the end says so.
func MaskedDiff(plan Plan, observed []Observed) string {
	found := map[string]FileState{}
	for _, o := range observed {
		for p, f := range o.Files.Ours {
			found[p] = f
		}
	}
	var out strings.Builder
	for _, a := range plan.Actions {
		if a.Kind == ActionWrite || a.Kind == ActionRemove {
			out.WriteString(fileDiff(a, found[a.File.Path]))
		}
	}
	return cut(out.String())
}

// fileDiff is the diff of one file.
func fileDiff(a Action, found FileState) string {
	oldName, newName := a.File.Path, a.File.Path
	if !found.Exists {
		oldName = absentFile
	}
	if a.Kind == ActionRemove {
		newName = absentFile
	}
	after := shown(a.File)
	before := maskForeign(found.Content)
	private := func(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 }
	if private(found.Mode) || a.Kind == ActionWrite && private(a.File.Mode) || path.Dir(a.File.Path) == EnvDir {
		before = maskSecretFile(found.Content, after)
	}
	if d := udiff.Unified(oldName, newName, printable(before), printable(after)); d != "" {
		return d
	}
	header := fmt.Sprintf("--- %s\n+++ %s\n", oldName, newName)
	switch {
	case a.Kind == ActionWrite && found.Exists && !bytes.Equal(found.Content, a.File.Content):
		return header + "(what differs is masked)\n"
	case a.Kind == ActionWrite && found.Exists:
		return header + fmt.Sprintf("(mode %#o becomes %#o)\n", found.Mode.Perm(), a.File.Mode.Perm())
	case len(a.File.Content) > 0:
		return header + "(the content is masked)\n"
	}
	return header + "(an empty file)\n"
}

// maskForeign masks what was found on the host. It was written by anybody, so it is judged by its
// shape.
func maskForeign(content []byte) []byte {
	lines := strings.SplitAfter(string(content), "\n")
	for i, line := range lines {
		lines[i] = maskText(line)
	}
	return []byte(strings.Join(lines, ""))
}

// maskSecretFile masks what was found in a file that holds secrets. Whoever edited it may have given
// them any shape, so of a line that does not stand in the masked new file only the name is shown.
func maskSecretFile(content, masked []byte) []byte {
	known := map[string]bool{}
	for line := range strings.Lines(string(masked)) {
		known[line] = true
	}
	var out strings.Builder
	for line := range strings.Lines(string(content)) {
		text := maskText(line)
		if known[text] || text == "\n" {
			out.WriteString(text)
			continue
		}
		name, _, assigns := strings.Cut(text, "=")
		if assigns && unitfile.ValidName(name) {
			out.WriteString(name + "=")
		}
		out.WriteString(proxyenv.Mask + "\n")
	}
	return []byte(out.String())
}

// printable makes text valid UTF-8 without control characters other than the newline, so that it
// can stand in a status and on a terminal.
func printable(text []byte) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || !unicode.IsControl(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\x%02x`, r)
		}
		text = text[size:]
	}
	return out.String()
}

// cut shortens a diff to MaxDiff at a rune's start.
func cut(diff string) string {
	if len(diff) <= MaxDiff {
		return diff
	}
	const room = 64
	end := MaxDiff - room
	for !utf8.RuneStart(diff[end]) {
		end--
	}
	return diff[:end] + fmt.Sprintf("\n(cut: %d bytes more)\n", len(diff)-end)
}

// maskText masks credentials in foreign text.
func maskText(text string) string { return userinfo.ReplaceAllString(text, "://"+proxyenv.Mask+"@") }

// userinfo of a URL.
var userinfo = regexp.MustCompile(`://[^\s"']*@`)
