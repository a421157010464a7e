package download

import (
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/port"
)

// want is what a Range header asks for.
type want int

const (
	// wantAll: no range, one that is not well-formed, or several; a server may
	// answer each with the whole (RFC 9110, §14.2).
	wantAll want = iota
	// wantPart: one range, at least one byte of which exists.
	wantPart
	// wantNothing: one range that lies outside of the output.
	wantNothing
)

// parseRange reads a Range header for an output of size bytes. A range that
// ends behind the output is cut to it.
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

// number is the value of a text of digits, or the largest where it is too
// large to be held.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // out of range gives the largest
	return n
}
