package display

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Table is a text table.
type Table struct {
	head []string
	rows [][]string
}

// NewTable returns a table with these column heads. Without heads it has no head line.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Row adds a row. Cells are cleaned.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Clean(c)
	}
	t.rows = append(t.rows, row)
}

// WriteTo writes the table with its columns aligned, two spaces apart. On Colored, its states
// have colours.
func (t *Table) WriteTo(out io.Writer) (int64, error) {
	lines := t.rows
	if len(t.head) > 0 {
		lines = append([][]string{t.head}, lines...)
	}
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	_, colored := out.(Colored)
	var text strings.Builder
	for n, line := range lines {
		var row strings.Builder
		for i, cell := range line {
			padded := runewidth.FillRight(cell, widths[i])
			if i == len(line)-1 {
				padded = cell
			}
			if colored {
				padded = paint(cell, padded)
			}
			row.WriteString(padded + "  ")
		}
		done := strings.TrimRight(row.String(), " ")
		if colored && n == 0 && len(t.head) > 0 {
			done = bold + done + plain
		}
		text.WriteString(done + "\n")
	}
	n, err := io.WriteString(out, text.String())
	if err != nil {
		return int64(n), fmt.Errorf("cannot write the table: %w", err)
	}
	return int64(n), nil
}
