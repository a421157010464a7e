package display

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Output writes a program's output in a form that is safe for a terminal. A character that is
// split over two writes is written with the second.
type Output struct {
	to   io.Writer
	held []byte
}

// NewOutput returns an output that writes to a terminal or a file.
func NewOutput(to io.Writer) *Output { return &Output{to: to} }

// Print writes a part of the output.
func (o *Output) Print(text []byte) error {
	text = append(o.held, text...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if first := text[len(text)-n]; utf8.RuneStart(first) {
			if !utf8.FullRune(text[len(text)-n:]) {
				whole -= n
			}
			break
		}
	}
	o.held = bytes.Clone(text[whole:])
	_, err := o.to.Write(Escape(text[:whole]))
	return err
}

// Close writes what is left.
func (o *Output) Close() error {
	_, err := o.to.Write(Escape(o.held))
	o.held = nil
	return err
}
