package unitfile

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// awkward are values that broke somebody's proxy settings.
func awkward() []string {
	return []string{
		"", " ", "\t", " a b ", "plain", "http://proxy.corp.example:3128",
		"http://svc:p%40ss%3Aw%2Frd%2540%23@proxy:3128", `CORP\svc`, `a"b`, `a\"b`, `trailing"`, `trailing\`,
		"$HOME", "`id`", "it's", `'"\`, "größe", "“curly”", "#not a comment", "a;b", "%40", `\\`, `"`, "'", `\`,
		"a$b'c\"d\\e`f g", "x=y=z", "\u00a0", "😀",
	}
}

func TestC01_C02_C04_EnvLineReadsTheSameInEveryDialect(t *testing.T) {
	for _, value := range awkward() {
		checkEnvLine(t, "HTTPS_PROXY", value)
	}
}

func checkEnvLine(t *testing.T, name, value string) {
	t.Helper()
	line, err := EnvLine(name, value)
	if err != nil {
		t.Fatalf("EnvLine(%q, %q): %v", name, value, err)
	}
	for _, d := range EnvDialects() {
		got := ParseEnvFile("f", []byte("# header\n"+line+"AFTER=1\n"), d)
		want := []Assignment{
			{Name: name, Value: value, Position: Position{"f", 2}},
			{Name: "AFTER", Value: "1", Position: Position{"f", 3}},
		}
		if !slices.Equal(got.Assignments, want) || len(got.Notes) != 0 {
			t.Errorf("dialect %d reads %q as %+v with notes %v, want %+v", d, line, got.Assignments, got.Notes, want)
		}
	}
}

func FuzzEnvLine(f *testing.F) {
	for _, v := range awkward() {
		f.Add("NO_PROXY", v)
	}
	f.Add("1X", "a\nb")
	f.Add("X", "a\xff")
	f.Add("X", "\ufdd0")
	f.Fuzz(func(t *testing.T, name, value string) {
		carried := ValidName(name) && ValidText(value) && !HasControl(strings.ReplaceAll(value, "\t", ""))
		if !carried {
			if line, err := EnvLine(name, value); err == nil {
				t.Fatalf("EnvLine(%q, %q) = %q, want an error", name, value, line)
			}
			return
		}
		checkEnvLine(t, name, value)
	})
}

// FuzzParseEnvFile takes any text, and writes and reads again what was understood.
func FuzzParseEnvFile(f *testing.F) {
	for _, v := range awkward() {
		f.Add([]byte("A=" + v + "\nB='" + v + "'\r\nC=\"" + v))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, d := range EnvDialects() {
			parsed := ParseEnvFile("f", content, d)
			lines := 1 + bytes.Count(content, []byte("\n")) + bytes.Count(content, []byte("\r"))
			for _, a := range parsed.Assignments {
				if !ValidName(a.Name) || a.Line < 1 || a.Line > lines {
					t.Fatalf("impossible assignment %+v of %q", a, content)
				}
				line, err := EnvLine(a.Name, a.Value)
				if err != nil {
					continue // it holds a control character
				}
				again := ParseEnvFile("f", []byte(line), d)
				if len(again.Assignments) != 1 || again.Assignments[0].Value != a.Value {
					t.Fatalf("%q was read as %q and then as %+v", line, a.Value, again.Assignments)
				}
			}
		}
	})
}

func TestEnvLineRefuses(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"A", "a\x00b", "control character at byte 1"},
		{"A", "a\nb", "control character"},
		{"A", "a\rb", "control character"},
		{"A", "\x1b[31m", "control character"},
		{"A", "\u0085", "control character"},
		{"A", "\u2028", "control character"},
		{"A", "\xff", "not valid UTF-8"},
		{"A", "\uffff", "not valid UTF-8"},
		{"A B", "x", "not a variable's name"},
		{"", "x", "not a variable's name"},
	} {
		_, err := EnvLine(tc.name, tc.value)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("EnvLine(%q, %q) = %v, want %q", tc.name, tc.value, err, tc.want)
		}
	}
	if _, err := EnvLine("A", "s3cret\n"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error %v shows the value", err)
	}
}

func TestParseEnvFile(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		dialect    EnvDialect
		want       []string
		notes      []string
	}{
		{"plain", "A=1\nB = 2 \n", EnvDialectCurrent, []string{"A=1", "B=2"}, nil},
		{"backslash outside of quotes is eaten", `A=CORP\svc`, EnvDialectCurrent, []string{"A=CORPsvc"}, nil},
		{"percent is literal", "A=%40", EnvDialectCurrent, []string{"A=%40"}, nil},
		{"quote inside an unquoted value is literal", `A=a"b"`, EnvDialectCurrent, []string{`A=a"b"`}, nil},
		{"continuation", "A=a\\\nb\n", EnvDialectCurrent, []string{"A=ab"}, nil},
		{"quoted and quoted again", `A="a" 'b'`, EnvDialectCurrent, []string{"A=ab"}, nil},
		{"newline in quotes", "A=\"a\nb\"\nC=d\n", EnvDialectCurrent, []string{"A=a\nb", "C=d"}, nil},
		{"comment ends with its line from 254 on", "# x \\\nA=1\nB=2\n", EnvDialectCurrent, []string{"A=1", "B=2"}, nil},
		{"comment continues in 252", "# x \\\nA=1\nB=2\n", EnvDialect252, []string{"B=2"}, nil},
		{"dollar in double quotes, current", `A="\$x \y"`, EnvDialectCurrent, []string{`A=$x \y`}, nil},
		{"dollar in double quotes, 240", `A="\$x \y"`, EnvDialect240, []string{`A=\$x \y`}, nil},
		{"dollar in double quotes, 239", `A="\$x \y"`, EnvDialect239, []string{`A=$x y`}, nil},
		{"C75 CRLF", "A=1\r\nB=\"2\"\r\n", EnvDialectCurrent, []string{"A=1", "B=2"}, nil},
		{"C75 byte order mark", "\ufeffA=1\nB=2\n", EnvDialectCurrent, []string{"B=2"}, []string{"f:1: the line begins with a byte order mark"}},
		{"export", "export A=1\n", EnvDialectCurrent, nil, []string{"f:1: the line begins with the shell's export"}},
		{"no equals sign", "A=1\nnothing\n", EnvDialectCurrent, []string{"A=1"}, []string{"f:2: the line has no ="}},
		{"no equals sign at the end", "nothing", EnvDialectCurrent, nil, []string{"f:1: the line has no ="}},
		{"quote around the pair", "\"A=1\"\n", EnvDialectCurrent, nil, []string{"f:1: the quote stands before the name"}},
		{"curly quote", "\u201cA=1\u201d\n", EnvDialectCurrent, nil, []string{"f:1: the quote stands before the name"}},
		{"open quote", "A=\"1\nB=2\n", EnvDialectCurrent, []string{"A=1\nB=2\n"}, []string{"f:1: a quote is opened"}},
		{"one bad value costs the file", "A=1\nB=\xff\nC=2\n", EnvDialectCurrent, nil, []string{"f:2: the line is not valid UTF-8"}},
		{"NUL", "A=1\nB=\x00\n", EnvDialectCurrent, nil, []string{"f:2: the file holds a NUL"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ParseEnvFile("f", []byte(tc.text), tc.dialect)
			var pairs []string
			for _, a := range got.Assignments {
				pairs = append(pairs, a.Name+"="+a.Value)
			}
			if !slices.Equal(pairs, tc.want) {
				t.Errorf("got %q, want %q", pairs, tc.want)
			}
			checkNotes(t, got.Notes, tc.notes)
		})
	}
}

// checkNotes compares notes with the beginnings of what they must say.
func checkNotes(t *testing.T, got []Note, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got notes %v, want %q", got, want)
	}
	for i, n := range got {
		if !strings.HasPrefix(n.String(), want[i]) {
			t.Errorf("note %q, want it to begin with %q", n, want[i])
		}
	}
}
