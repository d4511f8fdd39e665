package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Table is text in aligned columns. Its last column is never padded.
type Table struct {
	// Header is left out when it is empty.
	Header []string
	rows   [][]cell
}

type cell struct {
	text  string
	paint func(string) string
}

// Cell is the text of one cell with the paint that it gets; a nil paint leaves it plain.
type Cell struct {
	Text  string
	Paint func(string) string
}

// Row adds a row of plain cells.
func (t *Table) Row(texts ...string) {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i] = cell{text: text}
	}
	t.rows = append(t.rows, row)
}

// Painted adds a row of cells that may be coloured; widths are those of the text alone.
func (t *Table) Painted(cells ...Cell) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		row[i] = cell{text: c.Text, paint: c.Paint}
	}
	t.rows = append(t.rows, row)
}

// Write writes the table, each line indented by the given number of spaces.
func (t *Table) Write(w io.Writer, colour Colour, indent int) error {
	rows := t.rows
	if len(t.Header) > 0 {
		header := make([]cell, len(t.Header))
		for i, h := range t.Header {
			header[i] = cell{text: h, paint: colour.Bold}
		}
		rows = append([][]cell{header}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.Repeat(" ", indent))
		for i, c := range row {
			text := c.text
			if c.paint != nil {
				text = c.paint(text)
			}
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
