package unitfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestC11_AgreesWithSystemdAnalyze asks the systemd of this machine which of many generated lines
// it takes in full, and compares.
func TestC11_AgreesWithSystemdAnalyze(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("systemd-analyze is not installed, and CI must ask it: %v", err)
		}
		t.Skipf("systemd-analyze is not installed, so there is no systemd to compare with: %v", err)
	}
	path := filepath.Join(t.TempDir(), "generated.service")
	lines := generatedLines(2000)
	text := "[Service]\nExecStart=/bin/true\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	complaints := complainedLines(t, tool, path)
	dropped := 0
	for i, line := range lines {
		at := Position{path, i + 3}
		want := complaints[at.Line] > 0
		if want {
			dropped++
		}
		if got := drops(at, line); got != want {
			t.Errorf("%q: systemd complains: %v; this package says that something is dropped: %v", line, want, got)
		}
	}
	if dropped < 100 || dropped > len(lines)-100 {
		t.Errorf("systemd complains of %d lines of %d, so the comparison shows little", dropped, len(lines))
	}
}

func complainedLines(t *testing.T, tool, path string) map[int]int {
	t.Helper()
	cmd := exec.Command(tool, "verify", "--man=no", "--generators=no", path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Its exit code does not tell whether lines were dropped; a failure to run at all does.
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(path) + `:([0-9]+): `)
	lines := map[int]int{}
	for _, m := range place.FindAllStringSubmatch(out.String(), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		lines[n]++
	}
	return lines
}

func drops(at Position, line string) bool {
	unit := ParseUnit(at.Path, []byte("[Service]\n"+line+"\n"))
	notes := unit.Notes
	for _, d := range unit.Directives {
		var more []Note
		if d.Key == "UnsetEnvironment" {
			_, more = ParseNames(at, "generated.service", d.Value)
		} else {
			_, more = ParseEnvironment(at, "generated.service", d.Value)
		}
		notes = append(notes, more...)
	}
	for _, n := range notes {
		if n.Kind == NoteDropped {
			return true
		}
	}
	return false
}

// generatedLines are the same in every run. Each holds a few pieces of what matters.
func generatedLines(count int) []string {
	pieces := []string{
		"A=1", "B=", "_x9=y", "9=z", "A B=c", "=", "\"", "'", " ", "\t", `\\`, `\"`, `\'`, `\s`, `\q`, `\x41`, `\x4`, `\x00`,
		`\101`, `\400`, `\u00e4`, `\ud800`, `\U0001F600`, `\xff`, "%%", "%n", "%C", "%4", "%!", "$X", "#", ";", "“", "ä", "\u2028", "é=1", "HTTP_PROXY=http://p:1",
	}
	random := rand.New(rand.NewPCG(1, 2))
	lines := make([]string, count)
	for i := range lines {
		var b strings.Builder
		for range 1 + random.IntN(5) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		key := "Environment"
		if i%5 == 0 {
			key = "UnsetEnvironment"
		}
		lines[i] = fmt.Sprintf("%s=%s", key, b.String())
	}
	return lines
}
