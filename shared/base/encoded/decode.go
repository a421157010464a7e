package encoded

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

// Decode reads the JSON of a document into v, which must be zero. The result and the errors are
// those of json.Unmarshal.
//
// It is fast for documents of Append: without space between the tokens, and with the fields in
// the order of the struct. All others are left to encoding/json. A method UnmarshalJSON of T is
// called only for these, so it must read a document of the fast kind as encoding/json reads a
// type without the method. The texts in v share one copy of the document.
func Decode[T any](text []byte, v *T) error {
	doc := string(text)
	if end := readerOf(reflect.TypeFor[T]()).read(doc, 0, unsafe.Pointer(v)); end == len(doc) { //nolint:gosec // a reader writes memory of its type only
		return nil
	}
	var zero T
	*v = zero
	if own, ok := any(v).(json.Unmarshaler); ok {
		return own.UnmarshalJSON(text) // json.Unmarshal would check the document twice before
	}
	return json.Unmarshal(text, v)
}

// reader decodes values of one type.
type reader struct {
	// read reads the value that starts at doc[at] into the zero memory at p. It returns the
	// index after the value, or failed if the document is left to encoding/json.
	read func(doc string, at int, p unsafe.Pointer) int
	// fields are those of a struct.
	fields []readField
}

// failed is the index after a value that was not read.
const failed = -1

type readField struct {
	name   string // with quotes and a colon
	offset uintptr
	reader *reader
}

// readers are the *reader of types.
var readers sync.Map

// readerOf returns the reader of a type, even if the type has a method UnmarshalJSON.
// Concurrent calls may make one each; all are equal.
func readerOf(t reflect.Type) *reader {
	if known, ok := readers.Load(t); ok {
		return known.(*reader) //nolint:forcetypeassert // see readers
	}
	made := &readerMaker{made: map[reflect.Type]*reader{}}
	r := &reader{}
	if t.Kind() == reflect.Struct && made.fields(r, t) {
		r.read = r.readStruct
	} else {
		r = made.reader(t)
	}
	readers.Store(t, r)
	return r
}

// readerMaker makes the readers of a type and of the types in it, which may contain themselves.
type readerMaker struct{ made map[reflect.Type]*reader }

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (m *readerMaker) reader(t reflect.Type) *reader {
	if known := m.made[t]; known != nil {
		return known
	}
	r := &reader{}
	m.made[t] = r
	to := reflect.PointerTo(t)
	switch kind := t.Kind(); {
	case t == timeType:
		r.read = readTime
	case t == rawType:
		r.read = readRaw
	case to.Implements(unmarshaler) || to.Implements(textUnmarshaler):
		r.read = readGeneric(t)
	case kind == reflect.String:
		r.read = readText
	case kind == reflect.Bool:
		r.read = readBool
	case (kind == reflect.Int || kind == reflect.Int64) && t.Size() == 8:
		r.read = readInt
	case kind == reflect.Float64:
		r.read = readFloat
	case kind == reflect.Array:
		r.read = readArray(m.reader(t.Elem()), t.Elem().Size(), t.Len())
	case kind == reflect.Pointer:
		r.read = readPointer(t.Elem(), m.reader(t.Elem()))
	case kind == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		r.read = readSlice(t, m.reader(t.Elem()))
	case kind == reflect.Map && textKeys(t):
		r.read = readMap(t, m.reader(t.Elem()))
	case kind == reflect.Struct && m.fields(r, t):
		r.read = r.readStruct
	default:
		r.read = readGeneric(t)
	}
	return r
}

// fields sets the fields of the reader of a struct. It returns false if the struct needs
// encoding/json.
func (m *readerMaker) fields(r *reader, t reflect.Type) bool {
	named, ok := namesOf(t)
	for _, f := range named {
		r.fields = append(r.fields, readField{name: f.name, offset: f.Offset, reader: m.reader(f.Type)})
	}
	return ok
}

// readStruct fails at a name that is not that of a later field.
func (r *reader) readStruct(doc string, at int, p unsafe.Pointer) int {
	if at = after(doc, at, '{'); at < 0 {
		return failed
	}
	if at < len(doc) && doc[at] == '}' {
		return at + 1
	}
	for i := range r.fields {
		f := &r.fields[i]
		if !strings.HasPrefix(doc[at:], f.name) {
			continue
		}
		if at = f.reader.read(doc, at+len(f.name), unsafe.Add(p, f.offset)); at < 0 || at >= len(doc) {
			return failed
		}
		if doc[at] == '}' {
			return at + 1
		}
		if at = after(doc, at, ','); at < 0 {
			return failed
		}
	}
	return failed
}

// after returns the index after the character c at doc[at].
func after(doc string, at int, c byte) int {
	if at < len(doc) && doc[at] == c {
		return at + 1
	}
	return failed
}

// readGeneric leaves the values of a type to encoding/json.
func readGeneric(t reflect.Type) func(string, int, unsafe.Pointer) int {
	return func(doc string, at int, p unsafe.Pointer) int {
		end := skip(doc, at)
		if end < 0 || json.Unmarshal([]byte(doc[at:end]), reflect.NewAt(t, p).Interface()) != nil {
			return failed
		}
		return end
	}
}

// skip returns the index after the value at doc[at], which may be malformed.
func skip(doc string, at int) int {
	depth := 0
	for i := at; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			if i = endOfText(doc, i+1); i < 0 {
				return failed
			}
			if depth == 0 {
				return i + 1
			}
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			return i
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return failed
}

// endOfText returns the index of the quote that ends a text.
func endOfText(doc string, at int) int {
	for ; at < len(doc); at++ {
		switch doc[at] {
		case '"':
			return at
		case '\\':
			at++
		}
	}
	return failed
}
