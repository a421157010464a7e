// Package xmlstream writes XML as a stream, with one buffer for a document of any size.
//
// The document is well-formed for texts of any bytes: characters that XML 1.0 forbids (control
// characters, invalid UTF-8, U+FFFE and U+FFFF) become U+FFFD. White space survives readers
// that normalise it: a carriage return is written as a reference, and so are line ends and tabs
// in attributes.
//
// Names of elements and attributes are the caller's constants and are written
// unchanged. After the first error of the underlying writer nothing is written; Flush
// returns the error.
package xmlstream

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

const bufferSize = 64 << 10

// Writer writes one document.
type Writer struct {
	out   *bufio.Writer
	stack []element
}

type element struct {
	name     string
	open     bool // its start tag is not closed yet
	children bool // it has elements within
}

// New returns a Writer to w.
func New(w io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(w, bufferSize)} }

// Declaration writes the XML declaration.
func (w *Writer) Declaration() {
	w.raw(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
}

// Start opens an element. attrs are names and values in turn. An attribute without a value is
// omitted.
func (w *Writer) Start(name string, attrs ...string) {
	w.closeTag()
	if n := len(w.stack); n > 0 {
		w.stack[n-1].children = true
		w.line()
	}
	w.raw("<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		if attrs[i+1] == "" {
			continue
		}
		w.raw(" " + attrs[i] + `="`)
		w.escape([]byte(attrs[i+1]), true)
		w.raw(`"`)
	}
	w.stack = append(w.stack, element{name: name, open: true})
}

// End closes the element that was opened last.
func (w *Writer) End() {
	last := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	switch {
	case last.open:
		w.raw("/>")
	case last.children:
		w.line()
		fallthrough
	default:
		w.raw("</" + last.name + ">")
	}
	if len(w.stack) == 0 {
		w.raw("\n")
	}
}

// Leaf writes an element with a text, or nothing if the text is blank.
func (w *Writer) Leaf(name, text string, attrs ...string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	w.Start(name, attrs...)
	w.closeTag()
	w.escape([]byte(text), false)
	w.End()
}

// LeafFrom writes an element with the text that r reads.
func (w *Writer) LeafFrom(name string, r io.Reader, attrs ...string) error {
	w.Start(name, attrs...)
	w.closeTag()
	err := w.copy(r)
	w.End()
	return err
}

// copy escapes a stream. A character may be split over two reads.
func (w *Writer) copy(r io.Reader) error {
	var chunk [8 << 10]byte
	kept := 0
	for {
		n, err := r.Read(chunk[kept:])
		n += kept
		whole := n
		if err == nil {
			whole = wholeRunes(chunk[:n])
		}
		w.escape(chunk[:whole], false)
		kept = copy(chunk[:], chunk[whole:n])
		if err == io.EOF { //nolint:errorlint // io.Reader promises io.EOF itself
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// wholeRunes returns the length of b without an incomplete character at its end.
func wholeRunes(b []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}

// Flush writes the buffer and returns the first error of writing.
func (w *Writer) Flush() error { return w.out.Flush() }

// Err returns the first error of writing so far.
func (w *Writer) Err() error {
	_, err := w.out.Write(nil)
	return err
}

func (w *Writer) closeTag() {
	if n := len(w.stack); n > 0 && w.stack[n-1].open {
		w.stack[n-1].open = false
		w.raw(">")
	}
}

func (w *Writer) line() {
	const blanks = "\n                    "
	w.raw(blanks[:min(len(blanks), 1+2*len(w.stack))])
}

func (w *Writer) raw(s string) { _, _ = w.out.WriteString(s) } // bufio keeps the error

func (w *Writer) escape(b []byte, attribute bool) {
	clean := 0
	for i := 0; i < len(b); {
		with, n := replacement(b[i:], attribute)
		if with != "" {
			_, _ = w.out.Write(b[clean:i])
			w.raw(with)
			clean = i + n
		}
		i += n
	}
	_, _ = w.out.Write(b[clean:])
}

const forbidden = "\uFFFD"

// replacement returns the text to write for the first character of b, or "" if it is unchanged,
// and the character's length.
func replacement(b []byte, attribute bool) (string, int) {
	c := b[0]
	if c >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(b)
		if (r == utf8.RuneError && n == 1) || r == 0xFFFE || r == 0xFFFF {
			return forbidden, n
		}
		return "", n
	}
	switch {
	case c == '&':
		return "&amp;", 1
	case c == '<':
		return "&lt;", 1
	case c == '>':
		return "&gt;", 1
	case c == '\r':
		return "&#xD;", 1
	case attribute && c == '"':
		return "&quot;", 1
	case attribute && c == '\n':
		return "&#xA;", 1
	case attribute && c == '\t':
		return "&#x9;", 1
	case c < 0x20 && c != '\n' && c != '\t':
		return forbidden, 1
	}
	return "", 1
}
