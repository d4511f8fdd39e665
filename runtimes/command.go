package runtimes

import (
	"slices"
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
	all := flags(words, names...)
	if len(all) == 0 {
		return "", false
	}
	return all[len(all)-1], true
}

// flags returns all values of a flag that may be given more than once.
func flags(words []string, names ...string) []string {
	var values []string
	for i, w := range words {
		name, value, joined := flagName(w)
		switch {
		case !slices.Contains(names, name):
		case joined:
			values = append(values, value)
		case i+1 < len(words):
			values = append(values, words[i+1])
		}
	}
	return values
}

// boolFlag returns a flag that takes no word of its own: "--name" or "--name=false".
func boolFlag(words []string, name string) (on, found bool) {
	for _, w := range words {
		if n, value, joined := flagName(w); n == name {
			on, found = !joined || value == "true" || value == "1", true
		}
	}
	return on, found
}

func hasFlag(words []string, names ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		name, _, _ := flagName(w)
		return slices.Contains(names, name)
	})
}

// flagName takes a word apart that is a flag; of another word the name is empty.
func flagName(word string) (name, value string, joined bool) {
	if !strings.HasPrefix(word, "-") {
		return "", "", false
	}
	return strings.Cut(strings.TrimLeft(word, "-"), "=")
}
