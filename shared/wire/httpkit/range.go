package httpkit

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/port"
)

// Part is the requested part of a content of Size bytes.
type Part struct {
	Span port.Span
	Size int64
	// Whole: the request selects no part.
	Whole bool
}

// PartOf returns the part of a content that a request selects. Range applies only to GET and,
// with If-Range, only to the version with that entity tag. The error is RangeNotSatisfiable for
// a range outside of the content.
func PartOf(r *http.Request, etag string, size int64) (Part, error) {
	all := Part{Span: port.Span{Length: size}, Size: size, Whole: true}
	if r.Method != http.MethodGet {
		return all, nil
	}
	if version := r.Header.Get("If-Range"); version != "" && !(version != "*" && Matches(version, etag, false)) {
		return all, nil
	}
	span, want := parseRange(r.Header.Get("Range"), size)
	switch want {
	case wantNothing:
		return Part{}, RangeNotSatisfiable(size)
	case wantPart:
		return Part{Span: span, Size: size}, nil
	}
	return all, nil
}

// Last reports whether the part includes the end of the content.
func (p Part) Last() bool { return p.Span.Offset+p.Span.Length == p.Size }

// Describe sets the headers of a response with the part, and returns the status of the
// response.
func (p Part) Describe(header http.Header) (status int) {
	header.Set("Content-Length", strconv.FormatInt(p.Span.Length, 10))
	header.Set("Accept-Ranges", "bytes")
	if p.Whole {
		return http.StatusOK
	}
	header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", p.Span.Offset, p.Span.Offset+p.Span.Length-1, p.Size))
	return http.StatusPartialContent
}

// want is the meaning of a Range header.
type want int

const (
	// wantAll: no range, a malformed one, or several. A server may return the whole content for
	// each (RFC 9110, §14.2).
	wantAll want = iota
	// wantPart: one range that overlaps the content.
	wantPart
	// wantNothing: one range outside of the content.
	wantNothing
)

// parseRange parses a Range header for a content of size bytes. A range beyond the end is cut
// at the end.
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
	n, _ := strconv.ParseInt(text, 10, 64) // on overflow, ParseInt returns the largest integer
	return n
}
