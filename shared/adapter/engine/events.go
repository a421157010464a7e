package engine

import (
	"bufio"
	"bytes"
	"io"
)

// eventBuffer is the size of the buffer of a stream of events. keptEvent is the size of an event
// above which its memory is not kept for the next one.
const (
	eventBuffer = 2 << 10
	keptEvent   = 64 << 10
)

// events reads the data of Server-Sent Events. It looks at each byte a fixed number of times, however
// the bytes arrive, and ignores all other fields and comments.
type events struct {
	from io.Reader
	most int // bytes of an event

	buffer  []byte
	unread  []byte // part of buffer
	err     error  // of from
	afterCR bool   // a line feed that follows belongs to the end of the line before
	begun   bool   // the first line was read

	line    []byte // begin of a line whose end was not read
	data    []byte // of the event so far
	hasData bool
	size    int // bytes of the event so far
	// searched counts the bytes in which an end of a line was searched, for tests.
	searched int
}

// newEvents reads events of at most most bytes.
func newEvents(from io.Reader, most int) *events {
	return &events{from: from, most: most, buffer: make([]byte, eventBuffer)}
}

// next returns the data of the next event, valid until the next call. The error is io.EOF at the end
// of the stream, io.ErrUnexpectedEOF if that is within a line, bufio.ErrTooLong for an event that is
// too long, or that of the stream.
func (r *events) next() ([]byte, error) {
	r.clear()
	for {
		for len(r.unread) > 0 {
			line, whole := r.cut()
			if r.size > r.most && (len(line) > 0 || !whole) {
				return nil, bufio.ErrTooLong
			}
			if whole && r.field(line) {
				return r.data, nil
			}
		}
		switch {
		case r.err == io.EOF && len(r.line) > 0: //nolint:errorlint // of io.Reader
			return nil, io.ErrUnexpectedEOF
		case r.err == io.EOF && r.hasData: //nolint:errorlint // of io.Reader
			r.hasData = false
			return r.data, nil
		case r.err != nil:
			return nil, r.err
		}
		var n int
		n, r.err = r.from.Read(r.buffer)
		r.unread = r.buffer[:n]
	}
}

// clear forgets the event that was returned last.
func (r *events) clear() {
	if r.data, r.hasData, r.size = r.data[:0], false, 0; cap(r.data) > keptEvent {
		r.data = nil
	}
	if cap(r.line) > keptEvent {
		r.line = nil
	}
}

// cut returns the next line without its end. If the end was not read, whole is false, and the
// beginning is kept.
func (r *events) cut() (line []byte, whole bool) {
	if r.afterCR {
		if r.afterCR = false; r.unread[0] == '\n' {
			r.unread = r.unread[1:]
			return nil, false
		}
	}
	end := bytes.IndexByte(r.unread, '\n')
	if end < 0 {
		end = len(r.unread)
	}
	if cr := bytes.IndexByte(r.unread[:end], '\r'); cr >= 0 {
		end = cr
	}
	r.searched += end
	r.size += end
	line = r.unread[:end]
	if end == len(r.unread) {
		r.line, r.unread = append(r.line, line...), nil
		return nil, false
	}
	r.size++
	r.afterCR, r.unread = r.unread[end] == '\r', r.unread[end+1:]
	if len(r.line) > 0 {
		line = append(r.line, line...)
		r.line = line[:0]
	}
	return line, true
}

// byteOrder is the mark with which a stream may begin.
var byteOrder = []byte("\xEF\xBB\xBF")

// field adds the data of a line to the event. It reports whether the line ends an event that has data.
func (r *events) field(line []byte) (ends bool) {
	if !r.begun {
		r.begun, line = true, bytes.TrimPrefix(line, byteOrder)
	}
	if len(line) == 0 {
		r.size = 0
		return r.hasData
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return false
	}
	if r.hasData {
		r.data = append(r.data, '\n')
	}
	r.data, r.hasData = append(r.data, bytes.TrimPrefix(value, []byte(" "))...), true
	return false
}
