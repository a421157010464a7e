package document

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth limits the nesting of arrays and objects.
const MaxDepth = 1000

// SyntaxError reports the first mistake in a JSON text.
type SyntaxError struct {
	Offset int // in bytes
	What   string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.What)
}

// Parse parses one JSON value. The last of duplicate members is kept, and bytes that are not
// UTF-8 become U+FFFD.
func Parse(text []byte) (any, error) {
	p := parser{text: text}
	p.space()
	value, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(p.text) {
		return nil, p.fail("unexpected text after the value")
	}
	return value, nil
}

type parser struct {
	text []byte
	at   int
}

func (p *parser) fail(what string) error { return &SyntaxError{Offset: p.at, What: what} }

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, p.fail("too many levels")
	}
	if p.at >= len(p.text) {
		return nil, p.fail("missing value")
	}
	switch c := p.text[p.at]; {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.string()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return true, p.word("true")
	case c == 'f':
		return false, p.word("false")
	case c == 'n':
		return nil, p.word("null")
	default:
		return nil, p.fail("unexpected character")
	}
}

func (p *parser) word(word string) error {
	if len(p.text)-p.at < len(word) || string(p.text[p.at:p.at+len(word)]) != word {
		return p.fail("expected " + word)
	}
	p.at += len(word)
	return nil
}

func (p *parser) object(depth int) (any, error) {
	p.at++
	o := &Object{}
	p.space()
	if p.take('}') {
		return o, nil
	}
	for {
		p.space()
		if p.at >= len(p.text) || p.text[p.at] != '"' {
			return nil, p.fail("expected a key")
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		p.space()
		if !p.take(':') {
			return nil, p.fail("expected ':'")
		}
		p.space()
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o.Set(key, value)
		p.space()
		if p.take('}') {
			return o, nil
		}
		if !p.take(',') {
			return nil, p.fail("expected ',' or '}'")
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	p.at++
	list := []any{}
	p.space()
	if p.take(']') {
		return list, nil
	}
	for {
		p.space()
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		p.space()
		if p.take(']') {
			return list, nil
		}
		if !p.take(',') {
			return nil, p.fail("expected ',' or ']'")
		}
	}
}

func (p *parser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) number() (any, error) {
	start := p.at
	p.take('-')
	if !p.take('0') && p.digits() == 0 {
		return nil, p.fail("expected a digit")
	}
	if p.take('.') && p.digits() == 0 {
		return nil, p.fail("expected a digit")
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if p.digits() == 0 {
			return nil, p.fail("expected a digit")
		}
	}
	return json.Number(p.text[start:p.at]), nil
}

func (p *parser) digits() (count int) {
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
		count++
	}
	return count
}

func (p *parser) string() (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			s := string(p.text[start:p.at])
			p.at++
			return s, nil
		case c == '\\' || c >= utf8.RuneSelf:
			return p.escaped(start)
		case c < ' ':
			return "", p.fail("control character in a string")
		default:
			p.at++
		}
	}
	return "", p.fail("unterminated string")
}

// escaped parses the rest of a string that contains escapes or invalid UTF-8.
func (p *parser) escaped(start int) (string, error) {
	out := append(make([]byte, 0, p.at-start+32), p.text[start:p.at]...)
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return string(out), nil
		case c == '\\':
			var err error
			if out, err = p.escape(out); err != nil {
				return "", err
			}
		case c < ' ':
			return "", p.fail("control character in a string")
		case c < utf8.RuneSelf:
			out = append(out, c)
			p.at++
		default:
			r, size := utf8.DecodeRune(p.text[p.at:])
			out = utf8.AppendRune(out, r)
			p.at += size
		}
	}
	return "", p.fail("unterminated string")
}

func (p *parser) escape(out []byte) ([]byte, error) {
	if p.at+1 >= len(p.text) {
		return nil, p.fail("unterminated string")
	}
	c := p.text[p.at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r, ok := p.hex(p.at + 2)
		if !ok {
			return nil, p.fail("expected four hexadecimal digits")
		}
		p.at += 6
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if p.at+1 < len(p.text) && p.text[p.at] == '\\' && p.text[p.at+1] == 'u' {
				low, _ = p.hex(p.at + 2)
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				p.at += 6
			}
		}
		return utf8.AppendRune(out, r), nil
	default:
		return nil, p.fail("unknown escape")
	}
	p.at += 2
	return append(out, c), nil
}

func (p *parser) hex(at int) (rune, bool) {
	if at+4 > len(p.text) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(p.text[at:at+4]), 16, 16)
	return rune(v), err == nil
}
