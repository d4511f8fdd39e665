package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

func TestExitCode(t *testing.T) {
	field := v1alpha1.FieldError{Path: "spec.proxy.http", Problem: "no scheme"}
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("pulling failed"), 1},
		{BadInput("reading %q: not there", "x.yaml"), 2},
		{fmt.Errorf("resolving: %w", v1alpha1.FieldErrors{field}), 2},
		{fmt.Errorf("resolving: %w", field), 2},
		{fmt.Errorf("checking: %w", &ExitError{Code: 4}), 4},
		{&ExitError{Code: 3, Err: BadInput("a more exact code wins")}, 3},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.err); got != tt.want {
			t.Errorf("ExitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
	if Said(errors.New("x")) || Said(&ExitError{Code: 1, Err: errors.New("x")}) || !Said(&ExitError{Code: 1}) {
		t.Error("Said is true exactly where an exit error has no cause")
	}
}

func TestTableAlignsByWhatIsSeen(t *testing.T) {
	table := Table{Header: []string{"HOST", "ROUTE", "WHY"}}
	colour := Colour(true)
	table.Painted(Cell{Text: "é.example"}, Cell{Text: "direct", Paint: colour.Green}, Cell{Text: "a"})
	table.Row("longer.example", "proxy", "b")
	var got, plain bytes.Buffer
	if err := table.Write(&got, colour, 2); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(&plain, false, 0); err != nil {
		t.Fatal(err)
	}
	want := "  \x1b[1mHOST\x1b[0m            \x1b[1mROUTE\x1b[0m   \x1b[1mWHY\x1b[0m\n" +
		"  é.example       \x1b[32mdirect\x1b[0m  a\n" +
		"  longer.example  proxy   b\n"
	if got.String() != want {
		t.Errorf("got\n%q\nwant\n%q", got.String(), want)
	}
	if !strings.HasPrefix(plain.String(), "HOST            ROUTE   WHY\n") {
		t.Errorf("plain: %q", plain.String())
	}
}

func TestPrinterFormats(t *testing.T) {
	value := struct {
		Host string `json:"host"`
	}{"a<b>&c"}
	tests := map[Format]string{
		Text: "said",
		JSON: "{\n  \"host\": \"a<b>&c\"\n}\n",
		YAML: "host: a<b>&c\n",
	}
	for format, want := range tests {
		var out, errs bytes.Buffer
		p := NewPrinter(&out, &errs, format, func(string) string { return "" })
		err := p.Print(value, func(w io.Writer, c Colour) error {
			if c {
				t.Error("a buffer is no terminal and gets no colour")
			}
			_, err := io.WriteString(w, "said")
			return err
		})
		if err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", format, out.String(), err, want)
		}
		p.Next("do this")
		if told := errs.Len() > 0; told != (format == Text) {
			t.Errorf("%s: hint %q", format, errs.String())
		}
	}
	var f Format
	if err := f.Set("xml"); err == nil {
		t.Error("xml is no format")
	}
}

// lockedBuffer is written by the progress's goroutine and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestProgressShowsOnlyWhatIsSlow(t *testing.T) {
	var plain, terminal lockedBuffer
	for _, p := range []*Printer{{Err: &plain}, {Err: &terminal, Terminal: true}} {
		pr := p.Progress()
		pr.Step("reading")
		now := time.Now()
		pr.draw(now.Add(time.Second))
		pr.Step("pulling")
		pr.draw(now.Add(3 * time.Second))
		pr.draw(now.Add(4 * time.Second))
		pr.End()
	}
	if got, want := plain.String(), "... pulling\n"; got != want {
		t.Errorf("plain: %q, want %q", got, want)
	}
	if got := terminal.String(); strings.Contains(got, "reading") || strings.Count(got, "pulling") != 2 || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("terminal: %q", got)
	}
}
