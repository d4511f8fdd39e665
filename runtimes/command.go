package runtimes

import (
	"strings"

	"github.com/proxyward/proxyward/internal/unitfile"
)

// command returns the words of the command line that the unit starts, with variables replaced as
// systemd does: $NAME as a word of its own becomes the words of its value, ${NAME} its value. A
// quote that is never closed gives the words before it.
func (u *Unit) command(env unitfile.Environment) []string {
	line, _ := u.last("Service", "ExecStart")
	raw, _ := unitfile.Words(line)
	var words []string
	for _, w := range raw {
		if name, found := strings.CutPrefix(w, "$"); found && unitfile.ValidName(name) {
			v, _ := env.Lookup(name)
			more, _ := unitfile.Words(v.Value)
			words = append(words, more...)
			continue
		}
		words = append(words, expandBraces(w, env))
	}
	return words
}

func expandBraces(word string, env unitfile.Environment) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(word, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + rest)
			return b.String()
		}
		v, _ := env.Lookup(name)
		b.WriteString(v.Value)
		word = after
	}
}

// flag returns the value of the last of the words that sets a flag: "--name value" or
// "--name=value", with one dash or two.
func flag(words []string, names ...string) (value string, found bool) {
	for i, w := range words {
		if !strings.HasPrefix(w, "-") {
			continue
		}
		name, v, joined := strings.Cut(strings.TrimLeft(w, "-"), "=")
		for _, n := range names {
			if name != n {
				continue
			}
			switch {
			case joined:
				value, found = v, true
			case i+1 < len(words):
				value, found = words[i+1], true
			}
		}
	}
	return value, found
}
