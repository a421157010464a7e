package encoded

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Any appends the JSON of v, which may be a pointer. Methods MarshalJSON of pointers to values in
// v are called, as for an addressable value.
func Any(to []byte, v any) ([]byte, error) {
	t := reflect.TypeOf(v)
	if t == nil {
		return append(to, "null"...), nil
	}
	at := reflect.ValueOf(v)
	if t.Kind() != reflect.Pointer {
		at = reflect.New(t)
		at.Elem().Set(reflect.ValueOf(v))
	} else if at.IsNil() {
		return appendAny(to, v)
	}
	return planOf(at.Type().Elem()).append(to, at.UnsafePointer())
}

// appendRaw leaves a document to encoding/json that is not compact or malformed.
func appendRaw(to []byte, p unsafe.Pointer) ([]byte, error) {
	raw := *(*json.RawMessage)(p)
	switch {
	case raw == nil:
		return append(to, "null"...), nil
	case json.Valid(raw) && !slices.ContainsFunc(raw, isSpace):
		return append(to, raw...), nil
	}
	return appendAny(to, raw)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// appendFloat leaves numbers with an exponent and those without a JSON form to encoding/json.
func appendFloat(to []byte, p unsafe.Pointer) ([]byte, error) {
	f := *(*float64)(p)
	if size := math.Abs(f); f != 0 && (size < 1e-6 || !(size < 1e21)) { // not below the limit if it is NaN
		return appendAny(to, f)
	}
	return strconv.AppendFloat(to, f, 'f', -1, 64), nil
}

// appendMap returns the append of a map with texts as keys, which are sorted.
func appendMap(t reflect.Type, elem *plan) func([]byte, unsafe.Pointer) ([]byte, error) {
	type entry struct {
		key  string
		elem unsafe.Pointer
	}
	return func(to []byte, p unsafe.Pointer) (_ []byte, err error) {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			return append(to, "null"...), nil
		}
		entries := make([]entry, 0, v.Len())
		elems := reflect.MakeSlice(reflect.SliceOf(t.Elem()), v.Len(), v.Len())
		for i, each := 0, v.MapRange(); each.Next(); i++ {
			at := elems.Index(i)
			at.SetIterValue(each)
			entries = append(entries, entry{each.Key().String(), at.Addr().UnsafePointer()})
		}
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
		to = append(to, '{')
		for i := range entries {
			if i > 0 {
				to = append(to, ',')
			}
			if to, err = appendText(to, unsafe.Pointer(&entries[i].key)); err != nil { //nolint:gosec // a text
				return to, err
			}
			if to, err = elem.append(append(to, ':'), entries[i].elem); err != nil {
				return to, err
			}
		}
		return append(to, '}'), nil
	}
}

// textKeys reports whether encoding/json uses the keys of a map as they are.
func textKeys(t reflect.Type) bool {
	return t.Key().Kind() == reflect.String && !t.Key().Implements(textMarshaler) && !reflect.PointerTo(t.Key()).Implements(textUnmarshaler)
}
