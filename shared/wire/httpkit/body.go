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
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// The size limits of request bodies, in bytes. That of workers is derived from the maximum
// input of a Lambda function (6 MiB in base64): a completion is never refused for its size,
// because long fields are truncated.
const (
	BodyLimit       = 1 << 20
	WorkerBodyLimit = 4 << 20
)

// depthLimit is the maximum nesting depth of a client's body.
const depthLimit = 64

// DecodeKeyed is DecodeJSON that also returns the Idempotency-Key of the request.
func DecodeKeyed(w http.ResponseWriter, r *http.Request, v any) (key string, err error) {
	if key, err = IdempotencyKey(r); err == nil {
		err = DecodeJSON(w, r, v)
	}
	return key, err
}

// DecodeKeyedUpTo is DecodeKeyed for a body of at most most bytes.
func DecodeKeyedUpTo(w http.ResponseWriter, r *http.Request, most int64, v any) (key string, err error) {
	if key, err = IdempotencyKey(r); err != nil {
		return key, err
	}
	if err := checkContentType(r, false); err != nil {
		return key, err
	}
	body, err := readAll(w, r, most)
	if err != nil {
		return key, err
	}
	return key, ParseJSON(body, v)
}

// DecodeJSON decodes the body of a client's request, a single JSON object, into the struct that
// v points to. The faults are InvalidRequest with the field in dotted spelling
// ("options.maxDepth"), TooLarge above the size limit, and 415 for a content type other than
// application/json. Names are case-sensitive. It rejects unknown fields, nulls but for pointers in
// a map, duplicate names, text after the object, and nesting deeper than 64.
func DecodeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readBody(w, r, false)
	if err != nil {
		return err
	}
	return ParseJSON(body, v)
}

// DecodeOptionalJSON is DecodeJSON for an optional body. It leaves v unchanged if the body is
// empty.
func DecodeOptionalJSON(w http.ResponseWriter, r *http.Request, v any) error {
	if len(peek(r)) == 0 {
		return nil
	}
	return DecodeJSON(w, r, v)
}

// The content types of documents.
const (
	TypeJSON  = "application/json"
	TypeYAML  = "application/yaml"
	TypePatch = "application/merge-patch+json"
)

// ReadDocument reads the body of a client's request, in one of the content types and at most
// most bytes long. The fault is InvalidRequest for malformed JSON, unless the type is YAML. Its
// other faults are those of DecodeJSON.
func ReadDocument(w http.ResponseWriter, r *http.Request, most int64, types ...string) ([]byte, error) {
	kind, err := contentTypeOf(r, types...)
	if err != nil {
		return nil, err
	}
	body, err := readAll(w, r, most)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errNoBody()
	}
	if kind == TypeYAML {
		return body, nil
	}
	var value json.RawMessage
	if err := json.Unmarshal(body, &value); err != nil {
		return nil, notJSON(err)
	}
	return body, nil
}

// ReadBytes reads a body of any content type, at most most bytes long, into a file, or into
// memory if it is short. The caller closes it. The faults are TooLarge, InvalidRequest for an
// incomplete body, and 415 for a body with a content encoding.
func ReadBytes(w http.ResponseWriter, r *http.Request, most int64) (*Spool, error) {
	if err := checkEncoding(r); err != nil {
		return nil, err
	}
	tooLarge := func() error {
		return fault.New(fault.TooLarge, "body too large, want at most %d bytes", most)
	}
	if r.ContentLength > most {
		return nil, tooLarge()
	}
	body, err := newSpool(http.MaxBytesReader(w, r.Body, most))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge()
	}
	return body, err
}

// UnsupportedType returns the problem for a body whose content type the route does not accept
// (415).
func UnsupportedType(detail string) *Problem { return onlyHTTP(codeMediaType, "Content-Type", detail) }

// readBody reads a whole body and checks its content type. worker selects the rules for
// workers.
func readBody(w http.ResponseWriter, r *http.Request, worker bool) ([]byte, error) {
	if err := checkContentType(r, worker); err != nil {
		return nil, err
	}
	most := int64(BodyLimit)
	if worker {
		most = WorkerBodyLimit
	}
	return readAll(w, r, most)
}

func readAll(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, fault.New(fault.TooLarge, "body too large, want at most %d bytes", most)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidRequest, "incomplete body")
	}
	if x := exchangeOf(r.Context()); x != nil {
		x.body = body
	}
	return body, nil
}

func errNoBody() error { return fault.New(fault.InvalidRequest, "missing body, want a JSON object") }

func checkContentType(r *http.Request, worker bool) error {
	if worker && r.Header.Get("Content-Type") == "" {
		return checkEncoding(r)
	}
	_, err := contentTypeOf(r, TypeJSON)
	if err == nil || !worker {
		return err
	}
	if kind, _, bad := mime.ParseMediaType(r.Header.Get("Content-Type")); bad == nil && kind == "application/x-www-form-urlencoded" && isObject(r) {
		return checkEncoding(r) // curl's default content type for data
	}
	return err
}

func checkEncoding(r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return onlyHTTP(codeMediaType, "Content-Encoding", "unsupported content encoding, want none")
	}
	return nil
}

// contentTypeOf returns the content type of the body. It must be one of types.
func contentTypeOf(r *http.Request, types ...string) (string, error) {
	if err := checkEncoding(r); err != nil {
		return "", err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || !slices.Contains(types, kind) || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return "", onlyHTTP(codeMediaType, "Content-Type", "unsupported content type, want "+strings.Join(types, " or ")+" in UTF-8")
	}
	return kind, nil
}

// isObject reports whether the body starts like a JSON object. It consumes nothing.
func isObject(r *http.Request) bool {
	start := peek(r)
	return len(start) == 1 && start[0] == '{'
}

// peek returns the first byte of the body without consuming it; empty for an empty body.
func peek(r *http.Request) []byte {
	buffered := bufio.NewReaderSize(r.Body, 16)
	r.Body = struct {
		io.Reader
		io.Closer
	}{buffered, r.Body}
	start, _ := buffered.Peek(1) //nolint:errcheck // the next read returns the error
	return start
}

// ParseJSON decodes a body with the rules of DecodeJSON.
func ParseJSON(body []byte, v any) error {
	if !utf8.Valid(body) {
		return fault.New(fault.InvalidRequest, "invalid UTF-8 in the body")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return errNoBody()
	}
	s := shape{tokens: json.NewDecoder(bytes.NewReader(body))}
	s.tokens.UseNumber()
	// Scan first, because the scan limits the depth.
	if err := s.document(reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	err := json.Unmarshal(s.rewrite(body), v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := pathOf(reflect.TypeOf(v).Elem(), wrong.Field)
		return fault.Invalid(field, "%s is %s, want %s", nameOf(field), limit.Cut(wrong.Value, nameLimit), fault.Kind(wrong.Type))
	}
	if err != nil {
		return notJSON(err)
	}
	return nil
}

// notJSON returns the fault for malformed JSON. The error of the library is only logged.
func notJSON(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fault.Wrap(err, fault.InvalidRequest, "malformed JSON at byte %d of the body", syntax.Offset)
	}
	return fault.Wrap(err, fault.InvalidRequest, "malformed or incomplete JSON in the body")
}

func nameOf(field string) string {
	if field == "" {
		return "the body"
	}
	return field
}
