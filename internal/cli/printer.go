package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// Format is how a verb prints its result. It is a flag value.
type Format string

// The formats.
const (
	Text Format = "text"
	JSON Format = "json"
	YAML Format = "yaml"
)

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "text|json|yaml" }

// Set implements pflag.Value.
func (f *Format) Set(value string) error {
	switch Format(value) {
	case Text, JSON, YAML:
		*f = Format(value)
		return nil
	}
	return fmt.Errorf("found %q; write text, json or yaml", value)
}

// Printer prints results to Out, and what accompanies them (progress, warnings, hints) to Err, so
// that a result can be piped.
type Printer struct {
	Out, Err io.Writer
	Format   Format
	// Colour of Out, and of Err.
	Colour, ErrColour Colour
	// Terminal says that a person watches Err.
	Terminal bool
}

// NewPrinter returns a printer for the two streams, with colour on those that are terminals, unless
// the environment asks for none (NO_COLOR, or TERM=dumb).
func NewPrinter(out, errs io.Writer, format Format, getenv func(string) string) *Printer {
	plain := getenv("NO_COLOR") != "" || getenv("TERM") == "dumb"
	return &Printer{
		Out: out, Err: errs, Format: format,
		Colour:    Colour(!plain && isTerminal(out)),
		ErrColour: Colour(!plain && isTerminal(errs)),
		Terminal:  isTerminal(errs) && getenv("TERM") != "dumb",
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Print prints a value as JSON or YAML, or calls text for the form that people read.
func (p *Printer) Print(value any, text func(io.Writer, Colour) error) error {
	switch p.Format {
	case JSON:
		enc := json.NewEncoder(p.Out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err != nil {
			return fmt.Errorf("writing the result as JSON: %w", err)
		}
		return nil
	case YAML:
		out, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("writing the result as YAML: %w", err)
		}
		if _, err := p.Out.Write(out); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		return nil
	default:
		if err := text(p.Out, p.Colour); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		return nil
	}
}

// Warn tells a person something that stops nothing.
func (p *Printer) Warn(text string) {
	fmt.Fprintln(p.Err, p.ErrColour.Yellow("warning:"), text)
}

// Next tells a person what can be done now. Other formats than text have no use for it.
func (p *Printer) Next(steps ...string) {
	if p.Format != Text {
		return
	}
	for _, s := range steps {
		fmt.Fprintln(p.Err, p.ErrColour.Dim("next:"), s)
	}
}
