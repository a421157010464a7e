package stream

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Cursor is a place in a stream: after the event at Position, which is 0 before the first
// event. Its text is "<epoch>-<position>", or "0" in a stream without events.
type Cursor struct {
	Epoch    string
	Position int64
}

// The names of places in a stream.
const (
	Earliest = "earliest" // before the oldest event; "0" means the same
	Latest   = "latest"   // after the newest event

	zero = "0"
)

func (c Cursor) String() string {
	if c.Epoch == "" {
		return zero
	}
	return c.Epoch + "-" + strconv.FormatInt(c.Position, 10)
}

// cursorForm matches an epoch, as in port.Head, and a position without leading zeros.
var cursorForm = regexp.MustCompile(`^[a-z0-9]{1,32}-(0|[1-9][0-9]{0,18})$`)

// ParseCursor parses the text of a cursor. ok is false if it is malformed.
func ParseCursor(text string) (c Cursor, ok bool) {
	if text == zero {
		return Cursor{}, true
	}
	if !cursorForm.MatchString(text) {
		return Cursor{}, false
	}
	epoch, position, _ := strings.Cut(text, "-")
	n, err := strconv.ParseInt(position, 10, 64)
	return Cursor{epoch, n}, err == nil
}

// place is a cursor, or the name of a place.
type place struct {
	name   string // Earliest, Latest or empty
	cursor Cursor
}

// parsePlace parses the value of a parameter. The fault is InvalidRequest.
func parsePlace(text, parameter string) (place, error) {
	switch text {
	case Earliest, zero:
		return place{name: Earliest}, nil
	case Latest:
		return place{name: Latest}, nil
	}
	c, ok := ParseCursor(text)
	if !ok {
		return place{}, fault.Invalid(parameter, "malformed cursor, want that of an event or a page, or %s or %s", Earliest, Latest)
	}
	return place{cursor: c}, nil
}

// in returns the cursor of the place in a stream. ok is false if the stream does not have the
// place; the cursor is then before the oldest event.
func (p place) in(head port.Head) (c Cursor, ok bool) {
	oldest := Cursor{head.Epoch, max(head.Oldest-1, 0)}
	switch {
	case p.name == Latest:
		return Cursor{head.Epoch, head.Newest}, true
	case p.name == Earliest:
		return oldest, true
	case p.cursor.Epoch != head.Epoch, p.cursor.Position < oldest.Position, p.cursor.Position > head.Newest:
		return oldest, false
	}
	return p.cursor, true
}
