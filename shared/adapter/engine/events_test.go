package engine

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// chunked returns at most size bytes at a time.
type chunked struct {
	from io.Reader
	size int
}

func (c chunked) Read(p []byte) (int, error) { return c.from.Read(p[:min(len(p), c.size)]) }

// TestEvents reads streams in pieces of each size.
func TestEvents(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, row := range map[string]struct {
		stream string
		want   string // the data, with | behind each
		err    error
	}{
		"events":                      {"data: one\n\ndata: two\n\n", "one|two|", io.EOF},
		"no space":                    {"data:one\n\ndata:  two\n\n", "one| two|", io.EOF},
		"carriage returns":            {"data: one\r\n\r\ndata: two\r\rdata: three\r\n\n", "one|two|three|", io.EOF},
		"several lines":               {"data: one\ndata\ndata: two\n\n", "one\n\ntwo|", io.EOF},
		"comments and other fields":   {": ping\n\nevent: token\nid: 1\nretry: 5\ndata: one\n: x\n\nevent: end\n\n", "one|", io.EOF},
		"byte order mark":             {"\xEF\xBB\xBFdata: one\n\n", "one|", io.EOF},
		"end without an empty line":   {"data: one\n\ndata: two\n", "one|two|", io.EOF},
		"end within a line":           {"data: one\n\ndata: two", "one|", io.ErrUnexpectedEOF},
		"no data":                     {"", "", io.EOF},
		"largest event":               {"data: " + strings.Repeat("x", 57) + "\n\n", strings.Repeat("x", 57) + "|", io.EOF},
		"event that is too long":      {"data: one\n\ndata: " + strings.Repeat("x", 60) + "\n\n", "one|", bufio.ErrTooLong},
		"lines that are too long":     {strings.Repeat("data: 1\n", 10), "", bufio.ErrTooLong},
		"comments that are too long":  {strings.Repeat(": 1\n", 20), "", bufio.ErrTooLong},
		"comments with an empty line": {strings.Repeat(": 1\n\n", 20) + "data: one\n\n", "one|", io.EOF},
	} {
		for size := 1; size < 20; size++ {
			all, err := allOf(newEvents(chunked{strings.NewReader(row.stream), size}, 64))
			if all != row.want || !errors.Is(err, row.err) {
				t.Errorf("%s in pieces of %d bytes: got %q and %v, want %q and %v", name, size, all, err, row.want, row.err)
			}
		}
	}
	all, err := allOf(newEvents(io.MultiReader(strings.NewReader("data: one\n\ndata: t"), iotest.ErrReader(broken)), 64))
	if all != "one|" || !errors.Is(err, broken) {
		t.Errorf("got %q and %v, want the error of the stream", all, err)
	}
}

func allOf(r *events) (string, error) {
	var all strings.Builder
	for {
		data, err := r.next()
		if err != nil {
			return all.String(), err
		}
		all.Write(data)
		all.WriteByte('|')
	}
}

// TestLongEventIsReadOnce reads the longest event in small pieces. Each of its bytes is searched once
// for the end of the line.
func TestLongEventIsReadOnce(t *testing.T) {
	t.Parallel()
	long := "data: " + strings.Repeat("x", largestEvent-7)
	r := newEvents(chunked{strings.NewReader(long + "\n\n"), 100}, largestEvent)
	data, err := r.next()
	if err != nil || len(data) != largestEvent-7 {
		t.Fatalf("got %d bytes and %v", len(data), err)
	}
	if r.searched > len(long) {
		t.Errorf("searched %d bytes for an event of %d", r.searched, len(long))
	}
}

// TestEventsAllocateNothing: the memory of an event is used for the next one.
func TestEventsAllocateNothing(t *testing.T) { //nolint:paralleltest // it counts allocations of the process
	r := newEvents(strings.NewReader(strings.Repeat("data: {\"choices\":[]}\n\n", 3000)), largestEvent)
	if got := testing.AllocsPerRun(1000, func() { _, _ = r.next() }); got > 0 {
		t.Errorf("got %.0f allocations for an event", got)
	}
}
