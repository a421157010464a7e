package download

import (
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/port"
)

// want is the result of a Range header.
type want int

const (
	// wantAll: no range, a malformed one, or several; a server may return the
	// whole for each (RFC 9110, §14.2).
	wantAll want = iota
	// wantPart: one range that overlaps the output.
	wantPart
	// wantNothing: one range outside the output.
	wantNothing
)

// parseRange parses a Range header for an output of size bytes. A range beyond
// the end is cut at the end.
func parseRange(header string, size int64) (port.Span, want) {
	unit, set, found := strings.Cut(header, "=")
	if !found || !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		return port.Span{}, wantAll
	}
	first, last, found := strings.Cut(strings.Trim(set, " \t"), "-")
	if !found || !digits(first) || !digits(last) || first+last == "" {
		return port.Span{}, wantAll
	}
	if first == "" {
		length := min(number(last), size)
		if length == 0 {
			return port.Span{}, wantNothing
		}
		return port.Span{Offset: size - length, Length: length}, wantPart
	}
	begin, end := number(first), size-1
	if last != "" {
		if number(last) < begin {
			return port.Span{}, wantAll
		}
		end = min(number(last), end)
	}
	if begin >= size {
		return port.Span{}, wantNothing
	}
	return port.Span{Offset: begin, Length: end - begin + 1}, wantPart
}

func digits(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
}

// number returns the value of digits, or the largest integer on overflow.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // ParseInt returns the largest integer on overflow.
	return n
}
