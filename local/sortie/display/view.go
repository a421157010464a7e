package display

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// View displays pages of text on a whole terminal; each page replaces the previous one. It uses
// the terminal's alternate screen, so the normal screen is unchanged after Close.
type View struct {
	out  io.Writer
	size func() (columns, rows int)
	open bool
}

// NewView returns a view. size returns the current size of the terminal at out.
func NewView(out io.Writer, size func() (columns, rows int)) *View {
	return &View{out: out, size: size}
}

// Control sequences of ECMA-48 and xterm.
const (
	openView  = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	closeView = "\x1b[?25h\x1b[?1049l"
	homeView  = "\x1b[H"
	clearRest = "\x1b[K" // of this line
	clearDown = "\x1b[J"
)

// Rows returns the current number of lines of the terminal.
func (v *View) Rows() int {
	_, rows := v.size()
	return rows
}

// Draw displays lines, cut to the size of the terminal.
func (v *View) Draw(lines []string) error {
	columns, rows := v.size()
	var page strings.Builder
	if !v.open {
		page.WriteString(openView)
		v.open = true
	}
	page.WriteString(homeView)
	for i, line := range lines[:min(len(lines), max(rows, 1))] {
		if i > 0 {
			page.WriteString("\r\n")
		}
		page.WriteString(runewidth.Truncate(Clean(line), max(columns-1, 1), "…") + clearRest)
	}
	page.WriteString(clearDown)
	return v.put(page.String())
}

// Close restores the normal screen.
func (v *View) Close() error {
	if !v.open {
		return nil
	}
	v.open = false
	return v.put(closeView)
}

func (v *View) put(text string) error {
	if _, err := io.WriteString(v.out, text); err != nil {
		return fmt.Errorf("cannot write to the terminal: %w", err)
	}
	return nil
}
