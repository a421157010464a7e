package encoded

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"
)

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

// readText leaves texts with escapes or malformed UTF-8 to encoding/json.
func readText(doc string, at int, p unsafe.Pointer) int {
	first := after(doc, at, '"')
	if first < 0 {
		return failed
	}
	ascii := true
	for i := first; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			text := doc[first:i]
			if !ascii && !utf8.ValidString(text) {
				return failed
			}
			*(*string)(p) = text
			return i + 1
		case c == '\\':
			end := endOfText(doc, i)
			if end < 0 || json.Unmarshal([]byte(doc[at:end+1]), (*string)(p)) != nil {
				return failed
			}
			return end + 1
		case c < ' ':
			return failed
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return failed
}

func readBool(doc string, at int, p unsafe.Pointer) int {
	switch rest := doc[at:]; {
	case strings.HasPrefix(rest, "true"):
		*(*bool)(p) = true
		return at + len("true")
	case strings.HasPrefix(rest, "false"):
		*(*bool)(p) = false
		return at + len("false")
	}
	return failed
}

// readInt reads integers of 64 bits with at most 18 digits.
func readInt(doc string, at int, p unsafe.Pointer) int {
	negative := at < len(doc) && doc[at] == '-'
	if negative {
		at++
	}
	n, first := int64(0), at
	for ; at < len(doc) && doc[at] >= '0' && doc[at] <= '9'; at++ {
		n = n*10 + int64(doc[at]-'0') // too large ones are refused below
	}
	if digits := at - first; digits < 1 || digits > 18 || doc[first] == '0' && digits > 1 {
		return failed
	}
	if negative {
		n = -n
	}
	*(*int64)(p) = n
	return at
}

// readFloat leaves numbers with an exponent to encoding/json.
func readFloat(doc string, at int, p unsafe.Pointer) int {
	var whole int64
	end := readInt(doc, at, unsafe.Pointer(&whole)) //nolint:gosec // an integer
	if end > 0 && end < len(doc) && doc[end] == '.' {
		first := end + 1
		end = first
		for end < len(doc) && doc[end] >= '0' && doc[end] <= '9' {
			end++
		}
		if end == first {
			return failed
		}
	}
	if end < 0 || end < len(doc) && (doc[end] == 'e' || doc[end] == 'E') {
		return readNumber(doc, at, p)
	}
	f, err := strconv.ParseFloat(doc[at:end], 64)
	if err != nil {
		return failed
	}
	*(*float64)(p) = f
	return end
}

var readNumber = readGeneric(reflect.TypeFor[float64]())

// readArray fails if the array of the document has another length.
func readArray(elem *reader, size uintptr, n int) func(string, int, unsafe.Pointer) int {
	return func(doc string, at int, p unsafe.Pointer) int {
		before := byte('[')
		for i := range uintptr(n) { //nolint:gosec // not negative
			if at = after(doc, at, before); at < 0 {
				return failed
			}
			if at = elem.read(doc, at, unsafe.Add(p, i*size)); at < 0 {
				return failed
			}
			before = ','
		}
		return after(doc, at, ']') // failed for an array without elements
	}
}

// readTime reads times in UTC. All others are left to encoding/json.
func readTime(doc string, at int, p unsafe.Pointer) int {
	const second = "2006-01-02T15:04:05"
	end := skip(doc, at)
	if end < 0 || doc[at] != '"' {
		return failed
	}
	text, utc := strings.CutSuffix(doc[at+1:end-1], "Z")
	// The package time accepts one digit of an hour and a comma, which RFC 3339 does not permit.
	if utc && len(text) >= len(second) && text[13] == ':' && (len(text) == len(second) || text[19] == '.') {
		t, err := time.Parse(time.RFC3339, doc[at+1:end-1])
		if err != nil {
			return failed
		}
		*(*time.Time)(p) = t
		return end
	}
	if json.Unmarshal([]byte(doc[at:end]), (*time.Time)(p)) != nil {
		return failed
	}
	return end
}

func readRaw(doc string, at int, p unsafe.Pointer) int {
	end := skip(doc, at)
	if end < 0 {
		return failed
	}
	raw := json.RawMessage(doc[at:end])
	if !json.Valid(raw) {
		return failed
	}
	*(*json.RawMessage)(p) = raw
	return end
}

func isNull(doc string, at int) bool { return strings.HasPrefix(doc[at:], "null") }

func readPointer(t reflect.Type, elem *reader) func(string, int, unsafe.Pointer) int {
	return func(doc string, at int, p unsafe.Pointer) int {
		if isNull(doc, at) {
			return at + len("null")
		}
		made := reflect.New(t).UnsafePointer()
		if at = elem.read(doc, at, made); at >= 0 {
			*(*unsafe.Pointer)(p) = made
		}
		return at
	}
}

func readSlice(t reflect.Type, elem *reader) func(string, int, unsafe.Pointer) int {
	return func(doc string, at int, p unsafe.Pointer) int {
		if isNull(doc, at) {
			return at + len("null")
		}
		if at = after(doc, at, '['); at < 0 {
			return failed
		}
		slice := reflect.NewAt(t, p).Elem()
		slice.Set(reflect.MakeSlice(t, 0, 0))
		if at < len(doc) && doc[at] == ']' {
			return at + 1
		}
		for n := 0; ; n++ {
			slice.Grow(1)
			slice.SetLen(n + 1)
			if at = elem.read(doc, at, slice.Index(n).Addr().UnsafePointer()); at < 0 || at >= len(doc) {
				return failed
			}
			if doc[at] == ']' {
				return at + 1
			}
			if at = after(doc, at, ','); at < 0 {
				return failed
			}
		}
	}
}

func readMap(t reflect.Type, elem *reader) func(string, int, unsafe.Pointer) int {
	return func(doc string, at int, p unsafe.Pointer) int {
		if isNull(doc, at) {
			return at + len("null")
		}
		if at = after(doc, at, '{'); at < 0 {
			return failed
		}
		entries := reflect.NewAt(t, p).Elem()
		entries.Set(reflect.MakeMap(t))
		if at < len(doc) && doc[at] == '}' {
			return at + 1
		}
		key, value := reflect.New(t.Key()), reflect.New(t.Elem())
		for {
			if at = readText(doc, at, key.UnsafePointer()); at < 0 {
				return failed
			}
			if at = after(doc, at, ':'); at < 0 {
				return failed
			}
			if at = elem.read(doc, at, value.UnsafePointer()); at < 0 || at >= len(doc) {
				return failed
			}
			entries.SetMapIndex(key.Elem(), value.Elem())
			value.Elem().SetZero()
			if doc[at] == '}' {
				return at + 1
			}
			if at = after(doc, at, ','); at < 0 {
				return failed
			}
		}
	}
}
