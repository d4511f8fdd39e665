package profilefile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// Problem is one thing in a file that cannot be used.
type Problem struct {
	// Line in the file, from 1; 0 when it is about the file as a whole.
	Line int
	v1alpha1.FieldError
}

// Error is everything that is wrong with one file.
type Error struct {
	File     string
	Problems []Problem
}

// Error implements error with one line for each problem, each beginning with file:line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		at := e.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", e.File, p.Line)
		}
		if p.Path == "" {
			lines[i] = fmt.Sprintf("%s: %s; %s", at, p.Problem, p.Fix)
			continue
		}
		lines[i] = fmt.Sprintf("%s: %s", at, p.FieldError.Error())
	}
	return "reading profile: " + strings.Join(lines, "\nreading profile: ")
}

// syntaxProblem takes the line and the complaint out of the parser's error, which names the line in
// its text only.
func syntaxProblem(err error) (line int, problem string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): (.*)$`).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	return line, "it is not YAML (" + proxyenv.MaskText(text) + ")"
}

// shown returns a value of the file as it may be printed.
func shown(s string) string {
	const most = 80
	s = proxyenv.MaskText(s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
