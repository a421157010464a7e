package marcxml

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
)

// Limits of ISO 2709 in MARC 21: lengths have four and five digits.
const (
	maxField  = 9999
	maxRecord = 99999
	// perField is the size of a field's entry in the directory, its indicators and its
	// terminator. perSubfield is the size of the delimiter and the code.
	perField    = 12 + 2 + 1
	perSubfield = 2
	// reserve is the space for the leader, the control fields and the last note.
	reserve = 1024
)

// marc is a record under construction. Fields may be added in any order.
type marc struct {
	leader  string
	control []field
	data    []field
	bytes   int
	left    int // fields for which there was no room
}

type field struct {
	tag, indicators string
	subfields       []subfield
}

type subfield struct {
	code, text string
}

// add appends a data field: codes and texts in turn. It omits blank texts, and a field without
// any text.
func (m *marc) add(tag, indicators string, pairs ...string) {
	f := field{tag: tag, indicators: indicators}
	size := perField
	for i := 0; i+1 < len(pairs); i += 2 {
		whole := oneLine(pairs[i+1])
		text := clip(whole, maxField-3-size-perSubfield)
		if text == "" || pairs[i] == "u" && text != whole { // a truncated URL is useless
			continue
		}
		f.subfields = append(f.subfields, subfield{pairs[i], text})
		size += perSubfield + len(text)
	}
	if len(f.subfields) == 0 {
		return
	}
	if m.bytes+size > maxRecord-reserve {
		m.left++
		return
	}
	m.bytes += size
	m.data = append(m.data, f)
}

// oneLine returns the text with single spaces, because MARC data has no line ends. A
// byte that XML forbids counts as the three bytes of its replacement.
func oneLine(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7F || r == 0xFFFE || r == 0xFFFF {
			return utf8.RuneError
		}
		return r
	}, text)
}

// clip cuts a text to at most most bytes, between characters, and marks the cut.
func clip(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	cut := most - len(mark)
	if cut <= 0 {
		return ""
	}
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.TrimRight(text[:cut], " ") + mark
}

// head reads the start of a long text, a little more than a field can have.
func head(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, 2*maxField))
	return string(text), err
}

// write writes the record: leader, control fields, and data fields by tag. Fields with equal
// tags are in the order of add.
func (m *marc) write(w *xmlstream.Writer) {
	if m.left > 0 {
		m.data = append(m.data, field{
			tag: "500", indicators: "  ",
			subfields: []subfield{{"a", fmt.Sprintf("The record is full: %d fields were left out.", m.left)}},
		})
	}
	slices.SortStableFunc(m.data, func(a, b field) int { return strings.Compare(a.tag, b.tag) })
	w.Leaf("leader", m.leader)
	for _, f := range m.control {
		w.Leaf("controlfield", f.subfields[0].text, "tag", f.tag)
	}
	for _, f := range m.data {
		w.Start("datafield", "tag", f.tag, "ind1", f.indicators[:1], "ind2", f.indicators[1:])
		for _, s := range f.subfields {
			w.Leaf("subfield", s.text, "code", s.code)
		}
		w.End()
	}
}
