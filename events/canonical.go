package events

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// plainCanonical returns the canonical form (RFC 8785) of a JSON document without its top-level
// member named without; an empty name keeps all members. ok is false for a document that is not
// plain: its numbers, escapes or names need the rules of jcs.Transform.
//
// Events are plain. jcs.Transform allocates memory for each of their strings and members.
func plainCanonical(document []byte, without string) (canonical []byte, ok bool) {
	p := plain{from: document, to: make([]byte, 0, len(document)), without: without}
	if len(document) == 0 || document[0] != '{' && document[0] != '[' {
		return nil, false
	}
	ok = p.value(0) && p.at == len(document)
	return p.to, ok
}

// transform is like jcs.Transform, and faster for plain documents.
func transform(document []byte) ([]byte, error) {
	if canonical, ok := plainCanonical(document, ""); ok {
		return canonical, nil
	}
	return jcs.Transform(document)
}

// plain rewrites a document. Its methods return false for parts that are not plain.
type plain struct {
	from    []byte
	at      int
	to      []byte
	without string
	scratch []byte
}

// plainDepth is the largest depth of a plain document.
const plainDepth = 32

// plainDigits is the largest number of digits of a plain number. A double can represent every
// number with so many digits.
const plainDigits = 15

func (p *plain) value(depth int) bool {
	if p.at >= len(p.from) || depth > plainDepth {
		return false
	}
	switch c := p.from[p.at]; c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return p.text()
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	return p.number()
}

// take copies a byte if it is the next one.
func (p *plain) take(c byte) bool {
	if p.at >= len(p.from) || p.from[p.at] != c {
		return false
	}
	p.to = append(p.to, c)
	p.at++
	return true
}

func (p *plain) literal(text string) bool {
	if !bytes.HasPrefix(p.from[p.at:], []byte(text)) {
		return false
	}
	p.to = append(p.to, text...)
	p.at += len(text)
	return true
}

// number copies a number without an exponent and without needless digits. With so few digits it
// is the shortest one of its double. It does not copy the byte after the number, which is no
// part of a number in a plain document.
func (p *plain) number() bool {
	begin := p.at
	if p.from[p.at] == '-' {
		p.at++
	}
	first := p.at
	whole := p.digits()
	zero := whole > 0 && p.from[first] == '0'
	if whole == 0 || whole > plainDigits || zero && whole > 1 {
		return false
	}
	if p.at < len(p.from) && p.from[p.at] == '.' {
		p.at++
		point := p.at
		part := p.digits()
		small := zero && bytes.HasPrefix(p.from[point:], []byte("000000")) // an exponent is shorter
		if part == 0 || whole+part > plainDigits || small || p.from[p.at-1] == '0' {
			return false
		}
	} else if zero && first > begin { // -0 is 0
		return false
	}
	p.to = append(p.to, p.from[begin:p.at]...)
	return true
}

// digits skips digits and returns their number.
func (p *plain) digits() int {
	begin := p.at
	for p.at < len(p.from) && p.from[p.at] >= '0' && p.from[p.at] <= '9' {
		p.at++
	}
	return p.at - begin
}

// text copies a string. Plain escapes are the canonical ones, and those that encoding/json
// writes for '<', '>' and '&'.
func (p *plain) text() bool {
	begin := len(p.to)
	p.to = append(p.to, '"')
	for p.at++; p.at < len(p.from); p.at++ {
		switch c := p.from[p.at]; {
		case c == '"':
			p.at++
			p.to = append(p.to, '"')
			return utf8.Valid(p.to[begin:])
		case c < ' ':
			return false
		case c == '\\':
			if !p.escape() {
				return false
			}
		default:
			p.to = append(p.to, c)
		}
	}
	return false
}

// escape copies an escape. p is then at the last byte of the escape.
func (p *plain) escape() bool {
	rest := p.from[p.at+1:]
	if len(rest) > 0 && strings.IndexByte(`"\bfnrt`, rest[0]) >= 0 {
		p.to = append(p.to, '\\', rest[0])
		p.at++
		return true
	}
	for _, c := range []struct {
		text string
		is   byte
	}{{"u003c", '<'}, {"u003e", '>'}, {"u0026", '&'}} {
		if bytes.HasPrefix(rest, []byte(c.text)) {
			p.to = append(p.to, c.is)
			p.at += len(c.text)
			return true
		}
	}
	return false
}

func (p *plain) array(depth int) bool {
	p.take('[')
	if p.take(']') {
		return true
	}
	for p.value(depth + 1) {
		if p.take(']') {
			return true
		}
		if !p.take(',') {
			return false
		}
	}
	return false
}

// member has the positions of a member of an object in the canonical form.
type member struct{ name, begin, end int }

func (p *plain) object(depth int) bool {
	p.take('{')
	var room [24]member
	members, begin := room[:0], len(p.to)
	for more := p.at < len(p.from) && p.from[p.at] != '}'; more; {
		m := member{begin: len(p.to)}
		if !p.name() {
			return false
		}
		m.name = len(p.to)
		if !p.take(':') || !p.value(depth+1) {
			return false
		}
		m.end = len(p.to)
		if depth == 0 && p.without != "" && string(p.to[m.begin+1:m.name-1]) == p.without {
			p.to = p.to[:m.begin]
		} else {
			members = append(members, m)
		}
		if more = p.at < len(p.from) && p.from[p.at] == ','; more {
			p.at++
		}
	}
	return p.sort(begin, members) && p.take('}')
}

// name copies the name of a member. A plain name is ASCII without an escape, so names are
// ordered by their bytes.
func (p *plain) name() bool {
	begin := p.at
	if p.at >= len(p.from) || p.from[p.at] != '"' {
		return false
	}
	for p.at++; p.at < len(p.from); p.at++ {
		switch c := p.from[p.at]; {
		case c == '"':
			p.at++
			p.to = append(p.to, p.from[begin:p.at]...)
			return true
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return false
		}
	}
	return false
}

// sort orders the members of an object by name and separates them by commas. A name that occurs
// twice is not plain.
func (p *plain) sort(begin int, members []member) bool {
	p.scratch = append(p.scratch[:0], p.to[begin:]...)
	text := func(from, to int) []byte { return p.scratch[from-begin : to-begin] }
	// Without its quotes, because '"' comes after '!'.
	name := func(m member) []byte { return text(m.begin+1, m.name-1) }
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(name(a), name(b)) })
	p.to = p.to[:begin]
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(name(members[i-1]), name(m)) {
				return false
			}
			p.to = append(p.to, ',')
		}
		p.to = append(p.to, text(m.begin, m.end)...)
	}
	return true
}
