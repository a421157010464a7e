package record

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text refers to a long text without holding it in memory. The zero Text is empty.
type Text struct {
	at      io.ReaderAt
	off, n  int64
	escaped bool // the inside of a JSON string
}

// PlainText returns the first n bytes of at, without a byte order mark.
func PlainText(at io.ReaderAt, n int64) Text {
	var mark [3]byte
	if n >= 3 {
		if got, _ := at.ReadAt(mark[:], 0); got == 3 && bytes.Equal(mark[:], []byte("\xef\xbb\xbf")) {
			return Text{at: at, off: 3, n: n - 3}
		}
	}
	return Text{at: at, n: n}
}

// Open returns a reader of the text, which may have any bytes. It may be called
// repeatedly.
func (t Text) Open() io.Reader {
	if t.at == nil {
		return bytes.NewReader(nil)
	}
	section := io.NewSectionReader(t.at, t.off, t.n)
	if !t.escaped {
		return section
	}
	return &unescaper{from: bufio.NewReaderSize(section, 4096)}
}

// Blank reports whether the text has only white space and control characters.
func (t Text) Blank() bool {
	r := bufio.NewReaderSize(t.Open(), 512)
	for {
		c, _, err := r.ReadRune()
		if err != nil {
			return true
		}
		if !unicode.IsSpace(c) && !unicode.IsControl(c) {
			return false
		}
	}
}

// unescaper decodes the inside of a JSON string. It copies an invalid escape unchanged. A lone
// surrogate becomes U+FFFD.
type unescaper struct {
	from    *bufio.Reader
	pending []byte
}

func (u *unescaper) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(u.pending) > 0 {
			took := copy(p[n:], u.pending)
			u.pending = u.pending[took:]
			n += took
			continue
		}
		c, err := u.from.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		if c != '\\' {
			p[n] = c
			n++
			continue
		}
		u.pending = u.escape()
	}
	return n, nil
}

func (u *unescaper) escape() []byte {
	c, err := u.from.ReadByte()
	if err != nil {
		return []byte{'\\'}
	}
	switch c {
	case 'n':
		return []byte{'\n'}
	case 'r':
		return []byte{'\r'}
	case 't':
		return []byte{'\t'}
	case 'b':
		return []byte{'\b'}
	case 'f':
		return []byte{'\f'}
	case '"', '\\', '/':
		return []byte{c}
	case 'u':
		return u.codePoint()
	}
	return []byte{'\\', c}
}

func (u *unescaper) codePoint() []byte {
	high, ok := u.hex(0)
	if !ok {
		return []byte(`\u`)
	}
	_, _ = u.from.Discard(4)
	r := rune(high)
	if utf16.IsSurrogate(r) {
		r = utf8.RuneError
		if next, _ := u.from.Peek(2); string(next) == `\u` {
			if low, ok := u.hex(2); ok {
				if pair := utf16.DecodeRune(rune(high), rune(low)); pair != utf8.RuneError {
					_, _ = u.from.Discard(6)
					r = pair
				}
			}
		}
	}
	return utf8.AppendRune(nil, r)
}

// hex peeks at four hexadecimal digits, skip bytes ahead.
func (u *unescaper) hex(skip int) (uint16, bool) {
	digits, err := u.from.Peek(skip + 4)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseUint(string(digits[skip:]), 16, 16)
	return uint16(v), err == nil
}
