package httpkit

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// nameLimit is the maximum length, in bytes, of a field's name in an error.
const nameLimit = 64

// shape compares a JSON text with a Go type, token by token. It finds what encoding/json
// accepts: names in another case, duplicate names, nulls, and text after the value. It reports
// unknown names with their path.
type shape struct {
	tokens *json.Decoder
	// integers are the integers that encoding/json cannot decode.
	integers []integer
}

// integer is an integer literal that is out of range, or has a fraction or an exponent. JSON
// Schema accepts 36.0 and 1e3 as integers.
type integer struct {
	start, end int64
	value      int64
}

// exactLimit is 2^53. From there, several integers have the same float64.
const exactLimit = 1 << 53

// note records the literal that was just read if it is such an integer. If it is out of range,
// fits is false and the value is the largest or smallest int64. The use case then refuses it
// with the range of the field.
func (s *shape) note(literal string) (fits bool) {
	if _, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return true
	}
	value, _ := strconv.ParseFloat(literal, 64) //nolint:errcheck // infinite if it is out of range
	if value != math.Trunc(value) {
		return true
	}
	if mantissa := strings.FieldsFunc(literal, func(r rune) bool { return r == 'e' || r == 'E' })[0]; value == 0 && strings.ContainsAny(mantissa, "123456789") {
		return true // too small for a float64
	}
	whole, fits := wholeOf(literal, value)
	end := s.tokens.InputOffset()
	s.integers = append(s.integers, integer{end - int64(len(literal)), end, whole})
	return fits
}

// wholeOf returns the integer value of a literal, or the nearest int64 if it does not fit.
// about is the literal's float64 value.
func wholeOf(literal string, about float64) (whole int64, fits bool) {
	const longest = 40
	if math.Abs(about) < exactLimit {
		return int64(about), true
	}
	if math.Abs(about) <= math.MaxInt64 && len(literal) <= longest {
		if r, ok := new(big.Rat).SetString(literal); ok && r.IsInt() && r.Num().IsInt64() {
			return r.Num().Int64(), true
		}
	}
	if about < 0 {
		return math.MinInt64, false
	}
	return math.MaxInt64, false
}

// rewrite returns the body with the recorded integers in plain digits.
func (s *shape) rewrite(body []byte) []byte {
	if len(s.integers) == 0 {
		return body
	}
	var plain []byte
	var from int64
	for _, i := range s.integers {
		plain = strconv.AppendInt(append(plain, body[from:i.start]...), i.value, 10)
		from = i.end
	}
	return append(plain, body[from:]...)
}

func (s *shape) document(t reflect.Type) error {
	first, err := s.tokens.Token()
	if err != nil {
		return notJSON(err)
	}
	if first != json.Delim('{') {
		return fault.New(fault.InvalidRequest, "invalid body, want a JSON object")
	}
	if err := s.object(t, "", 1); err != nil {
		return err
	}
	_, err = s.tokens.Token()
	switch {
	case err == nil:
		return fault.New(fault.InvalidRequest, "unexpected text after the JSON object")
	case !errors.Is(err, io.EOF):
		return notJSON(err)
	}
	return nil
}

// object reads the members of an object up to its end. t is its type; nil allows any members.
func (s *shape) object(t reflect.Type, path string, depth int) error {
	if depth > depthLimit {
		return fault.Invalid(path, "body nested too deeply, want at most %d levels", depthLimit)
	}
	seen := map[string]bool{}
	for s.tokens.More() {
		token, err := s.tokens.Token()
		if err != nil {
			return notJSON(err)
		}
		name, _ := token.(string)
		at := join(path, limit.Cut(name, nameLimit))
		if seen[name] {
			return fault.Invalid(at, "duplicate field %s", at)
		}
		seen[name] = true
		member, known := memberOf(t, name)
		if !known {
			return fault.Invalid(at, "unknown field %q%s", at, meantBy(name, t))
		}
		nullable := member != nil && t.Kind() == reflect.Map && member.Kind() == reflect.Pointer
		if err := s.value(member, at, depth, nullable); err != nil {
			return err
		}
	}
	return s.end()
}

func (s *shape) array(t reflect.Type, path string, depth int) error {
	if depth > depthLimit {
		return fault.Invalid(path, "body nested too deeply, want at most %d levels", depthLimit)
	}
	for i := 0; s.tokens.More(); i++ {
		if err := s.value(t, join(path, strconv.Itoa(i)), depth, false); err != nil {
			return err
		}
	}
	return s.end()
}

func (s *shape) end() error {
	if _, err := s.tokens.Token(); err != nil {
		return notJSON(err)
	}
	return nil
}

// value reads a value. nullable allows null, as for a pointer in a map.
func (s *shape) value(t reflect.Type, path string, depth int, nullable bool) error {
	token, err := s.tokens.Token()
	if err != nil {
		return notJSON(err)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if number, ok := token.(json.Number); ok && t != nil && (t.Kind() == reflect.Int || t.Kind() == reflect.Int64) {
		if fits := s.note(number.String()); !fits && t == reflect.TypeFor[contract.Seed]() {
			return fault.Invalid(path, "%s is %s, want an integer from %d to %d", path, limit.Cut(number.String(), nameLimit), math.MinInt64, math.MaxInt64)
		}
	}
	if text, ok := token.(string); ok && t == reflect.TypeFor[time.Time]() {
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return fault.Invalid(path, "%s is %q, want a time such as 2026-01-02T03:04:05Z (RFC 3339)", path, limit.Cut(text, nameLimit))
		}
	}
	// encoding/json would report a value in a map without its name.
	if kind := tokenKind(token); t == reflect.TypeFor[string]() && kind != "" {
		return fault.Invalid(path, "%s is %s, want a string", path, kind)
	}
	switch token {
	case json.Delim('{'):
		return s.object(t, path, depth+1)
	case json.Delim('['):
		if t != nil && t.Kind() == reflect.Slice {
			t = t.Elem()
		} else {
			t = nil
		}
		return s.array(t, path, depth+1)
	case nil:
		if t != nil && !nullable {
			return fault.Invalid(path, "%s is null, want %s or no field", path, fault.Kind(t))
		}
	}
	return nil
}

// tokenKind returns the type of a value from its first token, as named by encoding/json; empty
// for a string and null.
func tokenKind(token json.Token) string {
	switch token {
	case json.Delim('{'):
		return "object"
	case json.Delim('['):
		return "array"
	case true, false:
		return "bool"
	}
	if _, ok := token.(json.Number); ok {
		return "number"
	}
	return ""
}

// memberOf returns the type of a member by its exact name; nil if any type is allowed. known is
// false if the type has no such field.
func memberOf(t reflect.Type, name string) (member reflect.Type, known bool) {
	if t != nil && t.Kind() == reflect.Map && (t.Elem().Kind() == reflect.String || t.Elem().Kind() == reflect.Pointer) {
		return t.Elem(), true
	}
	if t == nil || t == reflect.TypeFor[json.RawMessage]() || t.Kind() != reflect.Struct {
		return nil, true
	}
	for field := range t.Fields() {
		if field.Anonymous {
			if member, known := memberOf(field.Type, name); known {
				return member, true
			}
			continue
		}
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			if field.Type == reflect.TypeFor[json.RawMessage]() {
				return nil, true
			}
			return field.Type, true
		}
	}
	return nil, false
}

// pathOf returns the path of a field as clients spell it. The path of encoding/json also
// contains the names of embedded structs.
func pathOf(t reflect.Type, path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
			t = t.Elem()
		}
		if t != nil && t.Kind() == reflect.Struct {
			if field, ok := t.FieldByName(name); ok && field.Anonymous {
				t = field.Type
				continue
			}
		}
		t, _ = memberOf(t, name)
		names = append(names, name)
	}
	return strings.Join(names, ".")
}

// meantBy returns, as part of an error, the field that was probably meant by an unknown name,
// or all fields.
func meantBy(name string, t reflect.Type) string {
	if t.NumField() == 0 {
		return ", want an empty object"
	}
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); !field.Anonymous {
			names = append(names, tag)
		}
	}
	if meant := limit.Nearest(name, names); meant != "" {
		return ", did you mean " + meant + "?"
	}
	return ", want one of " + strings.Join(names, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
