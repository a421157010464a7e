package display

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Screen is where people read. It is safe for use by many goroutines: log
// lines that are written to it go above the line that is drawn.
type Screen struct {
	out   io.Writer
	width func() int

	mu   sync.Mutex
	live string
	// partial is the beginning of a line that was written without its end.
	partial []byte
}

// NewScreen makes a screen of out. width gives the terminal's columns at the
// time; nil says that out is no terminal, and nothing is drawn.
func NewScreen(out io.Writer, width func() int) *Screen {
	return &Screen{out: out, width: width}
}

// Draws says whether it is a terminal.
func (s *Screen) Draws() bool { return s.width != nil }

// Line writes a line that stays.
func (s *Screen) Line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.above([]byte(Clean(text) + "\n"))
}

// Write writes whole lines that stay, above the one that is drawn; the rest of
// an unfinished line waits for its end.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, p...)
	if end := bytes.LastIndexByte(s.partial, '\n') + 1; end > 0 {
		s.above(s.partial[:end])
		s.partial = append([]byte(nil), s.partial[end:]...)
	}
	return len(p), nil
}

// Draw writes the live line over; an empty text removes it. Where nothing is
// drawn it does nothing.
func (s *Screen) Draw(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Draws() || text == "" && s.live == "" {
		return
	}
	s.live = text
	s.put(clearLine + s.fit(text))
}

// clearLine goes to the beginning of the line and erases it.
const clearLine = "\r\x1b[K"

func (s *Screen) above(lines []byte) {
	if s.live == "" {
		s.put(string(lines))
		return
	}
	s.put(clearLine + string(lines) + s.fit(s.live))
}

// put writes; nobody can be told that the place to tell people is gone.
func (s *Screen) put(text string) { _, _ = io.WriteString(s.out, text) }

// fit cuts a line to the terminal's width; the last column stays empty,
// because some terminals wrap there.
func (s *Screen) fit(text string) string {
	return runewidth.Truncate(Clean(text), max(s.width()-1, 1), "…")
}

// Clean makes a text safe for a terminal: control characters become spaces,
// bytes that are no UTF-8 a mark.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
