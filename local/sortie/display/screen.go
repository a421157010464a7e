package display

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Screen writes lines, and on a terminal a live line below them. It is safe for concurrent use.
type Screen struct {
	out   io.Writer
	width func() int

	mu   sync.Mutex
	live string
	// partial is an unfinished line.
	partial []byte
}

// NewScreen returns a screen that writes to out. width returns the current columns of the
// terminal; nil means that out is not a terminal.
func NewScreen(out io.Writer, width func() int) *Screen {
	return &Screen{out: out, width: width}
}

// Draws reports whether the screen is a terminal.
func (s *Screen) Draws() bool { return s.width != nil }

// Line writes a permanent line.
func (s *Screen) Line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.above([]byte(Clean(text) + "\n"))
}

// Write writes complete lines permanently, above the live line. It buffers an unfinished line
// until its end arrives.
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

// Draw replaces the live line; an empty text removes it. Without a terminal it
// does nothing.
func (s *Screen) Draw(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Draws() || text == "" && s.live == "" {
		return
	}
	s.live = text
	s.put(clearLine + s.fit(text))
}

// clearLine moves to the start of the line and erases it.
const clearLine = "\r\x1b[K"

func (s *Screen) above(lines []byte) {
	if s.live == "" {
		s.put(string(lines))
		return
	}
	s.put(clearLine + string(lines) + s.fit(s.live))
}

// put writes text. It ignores errors, because there is no place to report them.
func (s *Screen) put(text string) { _, _ = io.WriteString(s.out, text) }

// fit truncates a line to the width of the terminal. The last column stays
// empty because some terminals wrap there.
func (s *Screen) fit(text string) string {
	return runewidth.Truncate(Clean(text), max(s.width()-1, 1), "…")
}

// Clean makes a text safe for a terminal: control characters become spaces,
// invalid UTF-8 becomes U+FFFD.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unsafeRune(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Escape makes a worker's output safe for a terminal. It keeps newlines and tabs. It replaces
// other control characters, bidirectional characters and invalid UTF-8 by Go escapes such as
// \x1b, \u009b and \u202e.
func Escape(text []byte) []byte {
	var safe []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			safe = fmt.Appendf(safe, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || r == '\r' && len(text) > 1 && text[1] == '\n' || !unsafeRune(r):
			safe = append(safe, text[:size]...)
		case r < utf8.RuneSelf:
			safe = fmt.Appendf(safe, `\x%02x`, r)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
		text = text[size:]
	}
	return safe
}

// EscapeJSON escapes the characters that a terminal interprets and encoding/json does not
// escape. The text stays valid JSON with the same meaning.
func EscapeJSON(text []byte) []byte {
	var safe []byte
	for _, r := range string(text) {
		if r >= 0x7f && unsafeRune(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = utf8.AppendRune(safe, r)
		}
	}
	return safe
}

// unsafeRune reports whether a terminal interprets the character, or reorders text because of
// it.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
