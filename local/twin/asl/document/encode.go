package document

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// Append appends the value as compact JSON to dst, with the minimum of escapes.
func Append(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return AppendString(dst, v)
	case json.Number:
		return append(dst, v...)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Append(dst, item)
		}
		return append(dst, ']')
	case *Object:
		dst = append(dst, '{')
		for i, m := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, m.Key)
			dst = append(dst, ':')
			dst = Append(dst, m.Value)
		}
		return append(dst, '}')
	default:
		panic("document: unsupported type")
	}
}

// AppendString appends s as a JSON string to dst.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// String returns the value as compact JSON.
func String(value any) string { return string(Append(nil, value)) }

// Fits reports whether the value needs at most limit bytes as compact JSON,
// without encoding it.
func Fits(value any, limit int) bool { return remaining(value, limit) >= 0 }

// remaining returns limit minus the size of the value, or a negative number.
func remaining(value any, limit int) int {
	if limit < 0 {
		return limit
	}
	switch v := value.(type) {
	case nil:
		return limit - 4
	case bool:
		if v {
			return limit - 4
		}
		return limit - 5
	case string:
		return limit - stringSize(v)
	case json.Number:
		return limit - len(v)
	case []any:
		limit -= 2 + max(len(v)-1, 0)
		for _, item := range v {
			if limit = remaining(item, limit); limit < 0 {
				return limit
			}
		}
	case *Object:
		limit -= 2 + max(len(v.members)-1, 0)
		for _, m := range v.members {
			if limit = remaining(m.Value, limit-stringSize(m.Key)-1); limit < 0 {
				return limit
			}
		}
	}
	return limit
}

func stringSize(s string) int {
	size := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c >= ' ' && c != '"' && c != '\\':
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			size++
		default:
			size += 5
		}
	}
	return size
}
