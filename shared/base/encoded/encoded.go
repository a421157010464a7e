// Package encoded encodes values as encoding/json does, for documents that are encoded several
// times in each run. The types are inspected once. After that a value is encoded without
// reflection and without an allocation for each field.
//
// The output is that of a json.Encoder without HTML escapes. Types that this package has no
// fast way for, such as interfaces and types with a method MarshalJSON, are left to
// encoding/json. Decode reads such documents in the same way.
package encoded

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"sync"
	"time"
	"unsafe"
)

// Append appends the JSON of the value that v points to. v must not be nil.
func Append[T any](to []byte, v *T) ([]byte, error) {
	return planOf(reflect.TypeFor[T]()).append(to, unsafe.Pointer(v)) //nolint:gosec // a plan reads memory of its type only
}

// plan encodes the values of one type.
type plan struct {
	// append appends the JSON of the value at p.
	append func(to []byte, p unsafe.Pointer) ([]byte, error)
	// fields are those of a struct.
	fields []field
}

// field is a field of a struct that has JSON.
type field struct {
	name   string // with quotes and a colon
	offset uintptr
	plan   *plan
	// omitted reports whether the value at p is left out; nil leaves out no value.
	omitted func(p unsafe.Pointer) bool
}

// plans are the *plan of types.
var plans sync.Map

// planOf returns the plan of a type. Concurrent calls may make one each; all are equal.
func planOf(t reflect.Type) *plan {
	if known, ok := plans.Load(t); ok {
		return known.(*plan) //nolint:forcetypeassert // see plans
	}
	made := &planner{made: map[reflect.Type]*plan{}}
	p := made.plan(t)
	plans.Store(t, p)
	return p
}

// planner makes the plans of a type and of the types in it, which may contain themselves.
type planner struct{ made map[reflect.Type]*plan }

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func (m *planner) plan(t reflect.Type) *plan {
	if known := m.made[t]; known != nil {
		return known
	}
	p := &plan{}
	m.made[t] = p
	to := reflect.PointerTo(t)
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Time]():
		p.append = appendTime
	case t == reflect.TypeFor[json.RawMessage]():
		p.append = appendRaw
	case to.Implements(marshaler) || to.Implements(textMarshaler):
		p.append = generic(t)
	case kind == reflect.String:
		p.append = appendText
	case kind == reflect.Bool:
		p.append = appendBool
	case kind >= reflect.Int && kind <= reflect.Int64:
		p.append = appendInt(t.Size())
	case kind == reflect.Float64:
		p.append = appendFloat
	case kind == reflect.Array:
		p.append = appendArray(m.plan(t.Elem()), t.Elem().Size(), t.Len())
	case kind == reflect.Map && textKeys(t):
		p.append = appendMap(t, m.plan(t.Elem()))
	case kind == reflect.Pointer:
		p.append = appendPointer(m.plan(t.Elem()))
	case kind == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		p.append = appendSlice(m.plan(t.Elem()), t.Elem().Size())
	case kind == reflect.Struct && m.fields(p, t):
		p.append = p.appendStruct
	default:
		p.append = generic(t)
	}
	return p
}

// generic leaves the values of a type to encoding/json.
func generic(t reflect.Type) func([]byte, unsafe.Pointer) ([]byte, error) {
	return func(to []byte, p unsafe.Pointer) ([]byte, error) {
		return appendAny(to, reflect.NewAt(t, p).Interface())
	}
}

func appendAny(to []byte, v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return to, err
	}
	return append(to, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...), nil
}

func appendTime(to []byte, p unsafe.Pointer) ([]byte, error) {
	to = append(to, '"')
	to, err := (*time.Time)(p).AppendText(to)
	return append(to, '"'), err
}

func appendText(to []byte, p unsafe.Pointer) ([]byte, error) {
	text := *(*string)(p)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendAny(to, text)
		}
	}
	return append(append(append(to, '"'), text...), '"'), nil
}

func appendBool(to []byte, p unsafe.Pointer) ([]byte, error) {
	return strconv.AppendBool(to, *(*bool)(p)), nil
}

// appendInt returns the append of integers of a size in bytes.
func appendInt(size uintptr) func([]byte, unsafe.Pointer) ([]byte, error) {
	return func(to []byte, p unsafe.Pointer) ([]byte, error) {
		return strconv.AppendInt(to, intAt(p, size), 10), nil
	}
}

func intAt(p unsafe.Pointer, size uintptr) int64 {
	switch size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

func appendPointer(elem *plan) func([]byte, unsafe.Pointer) ([]byte, error) {
	return func(to []byte, p unsafe.Pointer) ([]byte, error) {
		if p = *(*unsafe.Pointer)(p); p == nil {
			return append(to, "null"...), nil
		}
		return elem.append(to, p)
	}
}

func appendSlice(elem *plan, size uintptr) func([]byte, unsafe.Pointer) ([]byte, error) {
	return func(to []byte, p unsafe.Pointer) ([]byte, error) {
		elems := *(*[]struct{})(p) // its length is that of the slice
		if elems == nil {
			return append(to, "null"...), nil
		}
		return appendElems(to, elem, unsafe.Pointer(unsafe.SliceData(elems)), size, len(elems))
	}
}

func appendArray(elem *plan, size uintptr, n int) func([]byte, unsafe.Pointer) ([]byte, error) {
	return func(to []byte, p unsafe.Pointer) ([]byte, error) { return appendElems(to, elem, p, size, n) }
}

// appendElems appends n values of a size in bytes, the first of which is at p.
func appendElems(to []byte, elem *plan, p unsafe.Pointer, size uintptr, n int) (_ []byte, err error) {
	to = append(to, '[')
	for i := range uintptr(n) { //nolint:gosec // not negative
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = elem.append(to, unsafe.Add(p, i*size)); err != nil {
			return to, err
		}
	}
	return append(to, ']'), nil
}

func (s *plan) appendStruct(to []byte, p unsafe.Pointer) (_ []byte, err error) {
	before := byte('{')
	for i := range s.fields {
		f := &s.fields[i]
		at := unsafe.Add(p, f.offset)
		if f.omitted != nil && f.omitted(at) {
			continue
		}
		to = append(append(to, before), f.name...)
		before = ','
		if to, err = f.plan.append(to, at); err != nil {
			return to, err
		}
	}
	if before == '{' {
		to = append(to, '{')
	}
	return append(to, '}'), nil
}
