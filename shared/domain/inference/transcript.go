package inference

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Part is a section of the answer, or of the reasoning before it.
type Part struct {
	Text      string `json:"text"`
	Reasoning bool   `json:"reasoning,omitempty"`
}

// Parts are the parts of an answer, in order. The zero value is empty.
type Parts struct{ list []*growing }

// growing is a part to which pieces are appended.
type growing struct {
	text      strings.Builder
	reasoning bool
}

// Add appends a piece to the last part, or starts a new part if the last one is of the other
// kind. opens reports whether it started one.
func (s *Parts) Add(piece string, reasoning bool) (opens bool) {
	if opens = len(s.list) == 0 || s.list[len(s.list)-1].reasoning != reasoning; opens {
		s.list = append(s.list, &growing{reasoning: reasoning})
	}
	s.list[len(s.list)-1].text.WriteString(piece)
	return opens
}

// List returns the parts.
func (s *Parts) List() []Part {
	found := make([]Part, len(s.list))
	for i, p := range s.list {
		found[i] = Part{Text: p.text.String(), Reasoning: p.reasoning}
	}
	return found
}

// Joined returns the whole text of the answer, or of the reasoning.
func (s *Parts) Joined(reasoning bool) string {
	var text strings.Builder
	for _, p := range s.list {
		if p.reasoning == reasoning {
			text.WriteString(p.text.String())
		}
	}
	return text.String()
}

// Transcript collects the records of an answer for its artifact.
type Transcript struct{ parts Parts }

// Add appends the pieces of a record.
func (t *Transcript) Add(r Record) {
	for _, piece := range r.Reasoning {
		t.parts.Add(piece, true)
	}
	for _, piece := range r.Tokens {
		t.parts.Add(piece, false)
	}
}

// transcript is the JSON content of the artifact.
type transcript struct {
	Text      string `json:"transcript"`
	Reasoning string `json:"reasoning,omitempty"`
	// Parts has all parts in order, if the reasoning is not entirely before the text.
	Parts []Part `json:"parts,omitempty"`
}

// ordered returns the parts of a transcript, in order.
func (t transcript) ordered() []Part {
	if t.Parts != nil {
		return t.Parts
	}
	return slices.DeleteFunc([]Part{{t.Reasoning, true}, {t.Text, false}}, func(p Part) bool { return p.Text == "" })
}

// Content returns the content of the artifact.
func (t *Transcript) Content() json.RawMessage {
	is := transcript{Text: t.parts.Joined(false), Reasoning: t.parts.Joined(true)}
	if parts := t.parts.List(); !slices.Equal(is.ordered(), parts) {
		is.Parts = parts
	}
	content, _ := json.Marshal(is) //nolint:errchkjson // strings never fail
	return content
}

// ReadTranscript returns the records of an answer from the content of its artifact, with the
// attempt.
func ReadTranscript(from io.Reader, attempt int) (records []Record, err error) {
	var t transcript
	if err := json.NewDecoder(from).Decode(&t); err != nil {
		return nil, fmt.Errorf("malformed transcript: %w", err)
	}
	for _, p := range t.ordered() {
		if p.Reasoning {
			records = append(records, Record{Attempt: attempt, Reasoning: []string{p.Text}})
		} else {
			records = append(records, Record{Attempt: attempt, Tokens: []string{p.Text}})
		}
	}
	return records, nil
}
