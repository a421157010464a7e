package xmlstream

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWriter(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := New(&out)
	w.Declaration()
	w.Start("a", "x", "1 & \"2\"\r\n\t", "empty", "")
	w.Leaf("b", "<&>\r\n\x00\xff\ufffe ]]>", "y", "<")
	w.Leaf("b", " \n")
	w.Start("c")
	w.End()
	if err := w.LeafFrom("d", iotest.OneByteReader(strings.NewReader("é𝄞\xe2\x82"))); err != nil {
		t.Fatal(err)
	}
	w.End()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<a x="1 &amp; &quot;2&quot;&#xD;&#xA;&#x9;">
  <b y="&lt;">&lt;&amp;&gt;&#xD;
` + "\uFFFD\uFFFD\uFFFD" + ` ]]&gt;</b>
  <c/>
  <d>é𝄞` + "\uFFFD\uFFFD" + `</d>
</a>
`
	if out.String() != want {
		t.Errorf("wrote\n%s, want\n%s", out.String(), want)
	}
}

func TestWriterRemembersTheFirstError(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	w := New(broken{full})
	w.Start("a")
	w.Leaf("b", strings.Repeat("x", 2*bufferSize))
	w.End()
	if !errors.Is(w.Err(), full) || !errors.Is(w.Flush(), full) {
		t.Errorf("Err() = %v", w.Err())
	}
}

func TestReaderThatFailsIsTold(t *testing.T) {
	t.Parallel()
	w := New(io.Discard)
	w.Start("a")
	if err := w.LeafFrom("b", iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("LeafFrom = %v", err)
	}
}

// FuzzText checks that a reader reads the same text, for any bytes in any pieces.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\x00\xff\r\n]]>"), uint8(3))
	f.Add([]byte("é𝄞\u2028"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		var whole, pieces strings.Builder
		for _, row := range []struct {
			out  *strings.Builder
			from io.Reader
		}{{&whole, strings.NewReader(string(text))}, {&pieces, &stepped{text, int(step)%7 + 1}}} {
			w := New(row.out)
			w.Start("a", "b", string(text))
			if err := w.LeafFrom("c", row.from); err != nil {
				t.Fatal(err)
			}
			w.End()
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if whole.String() != pieces.String() {
			t.Errorf("in pieces it is\n%s, whole\n%s", pieces.String(), whole.String())
		}
		var got struct {
			Attribute string `xml:"b,attr"`
			Text      string `xml:"c"`
		}
		if err := xml.Unmarshal([]byte(whole.String()), &got); err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, whole.String())
		}
		want := strings.Map(func(r rune) rune {
			if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
				return 0xFFFD
			}
			return r
		}, string(text))
		if got.Text != want || got.Attribute != want {
			t.Errorf("read back %q and %q, want %q", got.Text, got.Attribute, want)
		}
	})
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

type stepped struct {
	left []byte
	step int
}

func (s *stepped) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.left[:min(s.step, len(s.left))])
	s.left = s.left[n:]
	return n, nil
}
