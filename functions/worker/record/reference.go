package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Reference is a *.ref.json: a file outside of the entity.
type Reference struct {
	Name     string // of the component
	URL      string
	CID      string // the file's, not the component's
	Type     string // MIME
	Size     string // bytes, in digits; empty if unknown
	Filename string
	OCR      Text // zero if it is missing
}

// maxField is the largest length of a member, except of ocr.
const maxField = 64 << 10

var errNoURL = errors.New("it has no url")

// ParseReference parses a reference of any size without holding its OCR in memory.
func ParseReference(name string, at io.ReaderAt, size int64) (Reference, error) {
	ref := Reference{Name: name}
	err := scanObject(at, size, func(key string, value span) error {
		if key == "ocr" {
			ref.OCR = value.text(at)
			return nil
		}
		into := map[string]*string{
			"url": &ref.URL, "ipfs_cid": &ref.CID, "type": &ref.Type, "size": &ref.Size, "filename": &ref.Filename,
		}[key]
		if into == nil {
			return nil
		}
		if value.n > maxField {
			return errors.New("its " + key + " is too long")
		}
		raw := make([]byte, value.n)
		if _, err := at.ReadAt(raw, value.off); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var t texts
		if err := json.Unmarshal(raw, &t); err != nil {
			return errNotObject
		}
		*into = t.first()
		return nil
	})
	if err != nil {
		return Reference{}, err
	}
	if ref.URL == "" {
		return Reference{}, errNoURL
	}
	if strings.Trim(ref.Size, "0123456789") != "" {
		ref.Size = ""
	}
	if ref.Filename == "" {
		ref.Filename = strings.TrimSuffix(name, ".ref.json")
	}
	return ref, nil
}

// span is the position of a JSON value.
type span struct{ off, n int64 }

func (s span) text(at io.ReaderAt) Text {
	var quote [1]byte
	if _, err := at.ReadAt(quote[:], s.off); err != nil || quote[0] != '"' || s.n < 2 {
		return Text{}
	}
	return Text{at: at, off: s.off + 1, n: s.n - 2, escaped: true}
}

// scanObject calls member with the position of each value of a JSON object. It checks
// the syntax of the object and that strings and brackets close, but not the content of
// the values.
func scanObject(at io.ReaderAt, size int64, member func(key string, value span) error) error {
	s := &scanner{r: bufio.NewReaderSize(io.NewSectionReader(at, 0, size), 16<<10)}
	if mark, _ := s.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		s.skip(3)
	}
	if s.next() != '{' {
		return errNotObject
	}
	c := s.next()
	for c != '}' {
		if c != '"' {
			return errNotObject
		}
		key, ok := s.key()
		if !ok || s.next() != ':' {
			return errNotObject
		}
		value, ok := s.value()
		if !ok {
			return errNotObject
		}
		if err := member(key, value); err != nil {
			return err
		}
		if c = s.next(); c == ',' {
			if c = s.next(); c == '}' {
				return errNotObject
			}
		} else if c != '}' {
			return errNotObject
		}
	}
	if s.next() != 0 {
		return errNotObject
	}
	return nil
}

type scanner struct {
	r   *bufio.Reader
	off int64
}

func (s *scanner) skip(n int) { d, _ := s.r.Discard(n); s.off += int64(d) }

// byte returns the next byte, or 0 at the end. A zero byte is not part of the syntax.
func (s *scanner) byte() byte {
	c, err := s.r.ReadByte()
	if err != nil {
		return 0
	}
	s.off++
	return c
}

// next returns the next byte that is not white space.
func (s *scanner) next() byte {
	for {
		switch c := s.byte(); c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
}

// key reads the name of a member after its opening quote.
func (s *scanner) key() (string, bool) {
	raw := []byte{'"'}
	for len(raw) < 1024 {
		c, err := s.r.ReadByte()
		if err != nil {
			return "", false
		}
		s.off++
		raw = append(raw, c)
		if c == '\\' {
			raw = append(raw, s.byte())
			continue
		}
		if c == '"' {
			var key string
			err := json.Unmarshal(raw, &key)
			return key, err == nil
		}
	}
	return "", false
}

// value skips one value.
func (s *scanner) value() (span, bool) {
	first := s.next()
	start := s.off - 1
	depth := 0
	for c := first; ; {
		switch c {
		case '"':
			if !s.closeString() {
				return span{}, false
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case 0, ',', ':':
			if c == 0 || depth == 0 {
				return span{}, false
			}
		}
		if depth < 0 {
			return span{}, false
		}
		if depth == 0 {
			if c != '"' && c != '}' && c != ']' {
				s.bare()
			}
			return span{off: start, n: s.off - start}, true
		}
		c = s.next()
	}
}

// bare skips the rest of a number, true, false or null.
func (s *scanner) bare() {
	for {
		next, err := s.r.Peek(1)
		if err != nil || strings.IndexByte(" \t\r\n,:{}[]\"", next[0]) >= 0 {
			return
		}
		s.skip(1)
	}
}

func (s *scanner) closeString() bool {
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return false
		}
		s.off++
		if c == '"' {
			return true
		}
		if c == '\\' {
			s.byte()
		}
	}
}
