package cli

// Colour colours text when it is true, and leaves it alone when it is false. Colour never carries
// a meaning that the words do not.
type Colour bool

// Green is for what is as it should be.
func (c Colour) Green(s string) string { return c.paint("32", s) }

// Yellow is for what deserves a look.
func (c Colour) Yellow(s string) string { return c.paint("33", s) }

// Red is for what is broken.
func (c Colour) Red(s string) string { return c.paint("31", s) }

// Dim is for what matters less.
func (c Colour) Dim(s string) string { return c.paint("2", s) }

// Bold is for headings.
func (c Colour) Bold(s string) string { return c.paint("1", s) }

func (c Colour) paint(code, s string) string {
	if !c || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
