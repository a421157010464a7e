package display

import (
	"bytes"
	"io"
	"regexp"
	"time"
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

var lineTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)

// Part returns the last tail lines of those since a time; -1 means all of them. timed is false if
// no line has a time to compare.
func Part(log []byte, tail int, since time.Time) (text []byte, timed bool) {
	lines := bytes.SplitAfter(log, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	if !since.IsZero() && len(lines) > 0 {
		from := len(lines)
		for i, line := range lines {
			at, err := time.Parse(time.RFC3339, string(bytes.Replace(lineTime.Find(line[:min(len(line), 200)]), []byte(" "), []byte("T"), 1)))
			if err != nil {
				continue
			}
			timed = true
			if !at.Before(since) {
				from = i
				break
			}
		}
		if !timed {
			return nil, false
		}
		lines = lines[from:]
	}
	if tail >= 0 && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	return bytes.Join(lines, nil), true
}
