package httpkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/fault"
)

// The longest bodies that are read, in bytes. A worker's is bounded by what a
// Lambda function can be given (6 MiB in base64) rather than by what makes
// sense: whatever is too long in it is cut, and the completion is taken.
const (
	BodyLimit       = 1 << 20
	WorkerBodyLimit = 4 << 20
)

// limit is the longest body of a sender.
func (l Leniency) limit() int64 {
	if l == Lenient {
		return WorkerBodyLimit
	}
	return BodyLimit
}

// depthLimit is how deep a body may be nested.
const depthLimit = 64

// Leniency says what DecodeJSON lets pass.
type Leniency int

// The two kinds of senders.
const (
	// Strict is for clients: whatever is not in the shape is refused by name,
	// so that a misspelled option is not silently left out.
	Strict Leniency = iota
	// Lenient is for workers, whose result is worth more than its form: unknown
	// fields and nulls count as absent, broken UTF-8 is mended, and the
	// Content-Type may be left out, or be curl's for a form. What has a wrong type is still refused.
	Lenient
)

// DecodeJSON reads the body, one JSON object, into the struct that v points to.
// Its faults are InvalidRequest with the field in dotted spelling
// ("options.maxDepth"), TooLarge above the sender's limit, and 415 for anything but
// application/json. Names are matched exactly; a name that comes twice, text
// after the object and nesting deeper than 64 are refused.
func DecodeJSON(w http.ResponseWriter, r *http.Request, v any, how Leniency) error {
	if err := checkContentType(r, how); err != nil {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, how.limit()))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return fault.New(fault.TooLarge, "a body has at most %d bytes", how.limit())
	}
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "the body ended before it was complete")
	}
	return parseJSON(body, v, how)
}

// DecodeOptionalJSON is DecodeJSON for a body that may be left out: v then stays
// as it is.
func DecodeOptionalJSON(w http.ResponseWriter, r *http.Request, v any, how Leniency) error {
	if len(peek(r)) == 0 {
		return nil
	}
	return DecodeJSON(w, r, v, how)
}

func checkContentType(r *http.Request, how Leniency) error {
	refused := onlyHTTP(codeMediaType, "Content-Type", "the body is JSON in UTF-8, with Content-Type: application/json")
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return onlyHTTP(codeMediaType, "Content-Encoding", "the body is not to be compressed")
	}
	given := r.Header.Get("Content-Type")
	if given == "" && how == Lenient {
		return nil
	}
	kind, params, err := mime.ParseMediaType(given)
	if err == nil && kind == "application/x-www-form-urlencoded" && how == Lenient && isObject(r) {
		return nil // what curl calls its data where nobody says what it is
	}
	if err != nil || kind != "application/json" {
		return refused
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refused
	}
	return nil
}

// isObject says whether the body begins as a JSON object does. It is still there
// to be read.
func isObject(r *http.Request) bool {
	start := peek(r)
	return len(start) == 1 && start[0] == '{'
}

// peek gives the first byte of the body, nothing of an empty one.
func peek(r *http.Request) []byte {
	buffered := bufio.NewReaderSize(r.Body, 16)
	r.Body = struct {
		io.Reader
		io.Closer
	}{buffered, r.Body}
	start, _ := buffered.Peek(1) //nolint:errcheck // whoever reads on is told
	return start
}

// parseJSON is DecodeJSON for a body that was read.
func parseJSON(body []byte, v any, how Leniency) error {
	if !utf8.Valid(body) {
		if how == Strict {
			return fault.New(fault.InvalidRequest, "the body is not UTF-8")
		}
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return fault.New(fault.InvalidRequest, "a body is needed: a JSON object")
	}
	s := shape{tokens: json.NewDecoder(bytes.NewReader(body)), how: how}
	s.tokens.UseNumber()
	// The scan comes first: it bounds the depth of what is then parsed.
	if err := s.document(reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	err := json.Unmarshal(s.rewrite(body), v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fault.Invalid(wrong.Field, "%s is %s, not %s", nameOf(wrong.Field), kindOf(wrong.Type), wrong.Value)
	}
	if err != nil {
		return notJSON(err)
	}
	return nil
}

// notJSON tells where the text stops being JSON; the library's words stay in
// the log.
func notJSON(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fault.Wrap(err, fault.InvalidRequest, "the body is not JSON: the mistake is at byte %d", syntax.Offset)
	}
	return fault.Wrap(err, fault.InvalidRequest, "the body is not JSON, or ends too early")
}

// kindOf is a Go type in the words of JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Pointer:
		return kindOf(t.Elem())
	}
	return "an object"
}

func nameOf(field string) string {
	if field == "" {
		return "the body"
	}
	return field
}
