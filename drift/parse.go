package drift

import (
	"fmt"
	"strings"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// headerMark begins the first line of every file of ours.
const headerMark = "# Managed by Proxyward"

// directive is one Key=value of a unit file.
type directive struct{ section, key, value string }

// parseDirectives reads a unit file as systemd does: lines end at \n and at \r, a backslash at the
// end of a line continues it with a space, comment lines do not, a byte order mark is skipped.
func parseDirectives(data []byte) []directive {
	text := strings.TrimPrefix(string(data), "\ufeff")
	var (
		list    []directive
		section string
		pending string
		open    bool
	)
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' || r == 0 }) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		if open {
			trimmed = pending + " " + trimmed
		}
		if pending, open = strings.CutSuffix(trimmed, `\`); open {
			continue
		}
		if strings.HasPrefix(trimmed, "[") && strings.HasSuffix(trimmed, "]") {
			section = trimmed[1 : len(trimmed)-1]
			continue
		}
		if key, value, ok := strings.Cut(trimmed, "="); ok {
			list = append(list, directive{section, strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	return list
}

// parseAssignments reads the words of an Environment=.
func parseAssignments(value string) ([]proxyenv.Var, string) {
	var vars []proxyenv.Var
	var problem string
	for _, word := range splitWords(value) {
		name, text, ok := strings.Cut(word, "=")
		if !ok || strings.ContainsFunc(name, func(r rune) bool { return r > 127 || r <= ' ' }) {
			problem = fmt.Sprintf("systemd ignores a word of Environment= that is no assignment")
			continue
		}
		vars = append(vars, proxyenv.Var{Name: name, Value: maskedSecret(text)})
	}
	return vars, problem
}

func splitWords(value string) []string {
	var (
		words []string
		word  strings.Builder
		quote rune
		in    bool
	)
	for _, r := range value {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, in = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}

// parseEnvironmentFile reads an environment file.
func parseEnvironmentFile(data []byte) ([]proxyenv.Var, string) {
	var vars []proxyenv.Var
	for line := range strings.SplitSeq(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			vars = append(vars, proxyenv.Var{Name: strings.TrimSpace(name), Value: maskedSecret(strings.Join(splitWords(value), " "))})
		}
	}
	return vars, ""
}
