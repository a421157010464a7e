package httpkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// DecodeReport decodes the body of a worker's call, a single JSON object, into the struct that
// v points to. A result must not be lost because of a detail. So it ignores unknown fields and
// nulls, replaces invalid UTF-8, rounds fractions, and accepts a missing Content-Type and
// curl's default for forms.
//
// A field whose tag has omitempty or omitzero is optional, and so are all fields of nested
// objects. An optional field with a value of another type counts as absent, and ignored lists
// it. The tag report:"object" accepts only JSON objects. report:"strict" refuses a wrong value
// as for a required field. The faults are those of DecodeJSON.
func DecodeReport(w http.ResponseWriter, r *http.Request, v any) (ignored []string, err error) {
	body, err := readBody(w, r, true)
	if err != nil {
		return nil, err
	}
	return parseReport(body, v)
}

// parseReport decodes the body for DecodeReport.
func parseReport(body []byte, v any) (ignored []string, err error) {
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errNoBody()
	}
	var text json.RawMessage
	if err := json.Unmarshal(body, &text); err != nil {
		return nil, notJSON(err)
	}
	if text = bytes.TrimSpace(text); text[0] != '{' {
		return nil, fault.New(fault.InvalidRequest, "invalid body, want a JSON object")
	}
	d := reportDecoder{}
	err = d.object(text, reflect.ValueOf(v).Elem(), "")
	return d.ignored, err
}

// reportDecoder decodes one body of a worker.
type reportDecoder struct{ ignored []string }

// reportField is a field of a body. If it is required, a wrong value is refused.
type reportField struct {
	reflect.Value
	required, object bool
}

// reportFields returns the fields of a struct, by JSON name. path is the path of the struct.
func reportFields(v reflect.Value, path string) map[string]reportField {
	fields := map[string]reportField{}
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		rule := tag.Get("report")
		required := rule == "strict" || path == "" && !strings.Contains(options, "omit")
		fields[name] = reportField{v.Field(i), required, rule == "object"}
	}
	return fields
}

// object decodes the members of a valid JSON object into a struct.
func (d *reportDecoder) object(text []byte, v reflect.Value, path string) error {
	fields := reportFields(v, path)
	members := json.NewDecoder(bytes.NewReader(text))
	_, _ = members.Token() // the opening brace
	seen := map[string]bool{}
	for members.More() {
		token, _ := members.Token()
		var value json.RawMessage
		if err := members.Decode(&value); err != nil {
			return notJSON(err)
		}
		name, _ := token.(string)
		field, known := fields[name]
		if !known {
			continue
		}
		at := join(path, name)
		if seen[name] {
			if field.required {
				return fault.Invalid(at, "duplicate field %s", at)
			}
			d.ignored = append(d.ignored, at)
			field.SetZero()
		}
		seen[name] = true
		if err := d.member(value, field, at); err != nil {
			return err
		}
	}
	return nil
}

// member decodes one member. It returns an error only for a required field.
func (d *reportDecoder) member(text []byte, field reportField, at string) error {
	if string(text) == "null" {
		return nil
	}
	var err error
	if field.object && text[0] != '{' {
		err = errors.New("no object")
	} else {
		err = d.value(text, field.Value, at, field.required)
	}
	if _, nested := errors.AsType[*fault.Fault](err); nested || err == nil {
		return err
	}
	if field.required {
		return fault.Invalid(at, "%s is %s, want %s", at, limit.Cut(string(text), nameLimit), fault.Kind(field.Type()))
	}
	field.SetZero()
	if !slices.Contains(d.ignored, at) {
		d.ignored = append(d.ignored, at)
	}
	return nil
}

// value decodes a valid JSON value that is not null. exact refuses fractions.
func (d *reportDecoder) value(text []byte, v reflect.Value, at string, exact bool) error {
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(text, v.Elem(), at, exact)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		if text[0] != '{' {
			return errors.New("no object")
		}
		return d.object(text, v, at)
	case v.CanInt():
		return setInteger(text, v, exact)
	}
	return json.Unmarshal(text, v.Addr().Interface())
}

// setInteger sets v to a JSON number, rounded to an integer. exact refuses fractions.
func setInteger(text []byte, v reflect.Value, exact bool) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		var number float64
		if err := json.Unmarshal(text, &number); err != nil {
			return err
		}
		n = int64(math.Round(number))
		if math.Abs(number) > exactLimit || exact && float64(n) != number {
			return errors.New("no integer")
		}
	}
	if v.OverflowInt(n) {
		return errors.New("out of range")
	}
	v.SetInt(n)
	return nil
}
