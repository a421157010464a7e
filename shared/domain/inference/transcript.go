package inference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/port"
)

// Part is a section of the answer, of the reasoning before it, or a call of a tool.
type Part struct {
	// Text is the text, or the arguments of a call.
	Text      string `json:"text"`
	Reasoning bool   `json:"reasoning,omitempty"`
	// Call is nil for a text.
	Call *CallHead `json:"call,omitempty"`
	// Choice is the answer of the part, counted from 0.
	Choice int `json:"choice,omitempty"`
	// Logprobs are the probabilities of the tokens of a text, if the request has them.
	Logprobs []port.TokenLogprob `json:"logprobs,omitempty"`
}

// CallHead identifies a call of a tool. Index counts the calls of an answer from 0.
type CallHead struct {
	Index int    `json:"index"`
	ID    string `json:"id"`
	Name  string `json:"name"`
}

// same reports whether two parts are equal, and have no probabilities.
func (p Part) same(as Part) bool {
	return len(p.Logprobs)+len(as.Logprobs) == 0 && p.Text == as.Text && p.Reasoning == as.Reasoning && p.Choice == as.Choice && (p.Call == nil) == (as.Call == nil) && (p.Call == nil || *p.Call == *as.Call)
}

// Parts are the parts of the answers of a request, in order. The zero value is empty.
type Parts struct {
	list []*growing
	// finishes are the finish reasons of the answers before the current one.
	finishes []string
}

// growing is a part to which pieces are appended.
type growing struct {
	text      strings.Builder
	reasoning bool
	call      *CallHead
	choice    int
	logprobs  []port.TokenLogprob
}

// EndChoice ends the current answer. What is added then belongs to the next one.
func (s *Parts) EndChoice(finish string) { s.finishes = append(s.finishes, finish) }

// Finishes returns the finish reasons of the answers before the current one.
func (s *Parts) Finishes() []string { return s.finishes }

// Of returns the parts of one answer.
func (s *Parts) Of(choice int) *Parts {
	one := &Parts{}
	for _, p := range s.list {
		if p.choice == choice {
			one.list = append(one.list, p)
		}
	}
	return one
}

// Add appends a piece to the last part, or starts a new part if the last one is of another
// kind. opens reports whether it started one.
func (s *Parts) Add(piece string, reasoning bool) (opens bool) {
	opens = len(s.list) == 0
	if !opens {
		last := s.list[len(s.list)-1]
		opens = last.call != nil || last.reasoning != reasoning || last.choice != len(s.finishes)
	}
	if opens {
		s.list = append(s.list, &growing{reasoning: reasoning, choice: len(s.finishes)})
	}
	s.list[len(s.list)-1].text.WriteString(piece)
	return opens
}

// AddLogprobs appends the probabilities of the piece that was added last.
func (s *Parts) AddLogprobs(of []port.TokenLogprob) {
	if n := len(s.list); n > 0 {
		s.list[n-1].logprobs = append(s.list[n-1].logprobs, of...)
	}
}

// Logprobs returns the probabilities of the tokens of the text.
func (s *Parts) Logprobs() (found []port.TokenLogprob) {
	for _, p := range s.list {
		found = append(found, p.logprobs...)
	}
	return found
}

// AddCall appends a part of a call to its call, or starts a new part. It returns the index of the
// call's part.
func (s *Parts) AddCall(d port.ToolDelta) (at int) {
	at = slices.IndexFunc(s.list, func(p *growing) bool { return p.call != nil && p.call.Index == d.Index && p.choice == len(s.finishes) })
	if at < 0 {
		at = len(s.list)
		s.list = append(s.list, &growing{call: &CallHead{Index: d.Index}, choice: len(s.finishes)})
	}
	p := s.list[at]
	p.call.ID, p.call.Name = cmp.Or(p.call.ID, d.ID), cmp.Or(p.call.Name, d.Name)
	p.text.WriteString(d.Arguments)
	return at
}

// List returns the parts.
func (s *Parts) List() []Part {
	found := make([]Part, len(s.list))
	for i, p := range s.list {
		found[i] = Part{Text: p.text.String(), Reasoning: p.reasoning, Choice: p.choice, Logprobs: p.logprobs}
		if p.call != nil {
			found[i].Call = new(*p.call)
		}
	}
	return found
}

// Calls returns the calls of tools, in the order of their start.
func (s *Parts) Calls() (found []port.ToolCall) {
	for _, p := range s.list {
		if p.call != nil {
			found = append(found, port.ToolCall{ID: p.call.ID, Name: p.call.Name, Arguments: p.text.String()})
		}
	}
	return found
}

// Joined returns the whole text of the answer, or of the reasoning.
func (s *Parts) Joined(reasoning bool) string {
	var text strings.Builder
	for _, p := range s.list {
		if p.call == nil && p.reasoning == reasoning {
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
	for i, piece := range r.Tokens {
		t.parts.Add(piece, false)
		if i < len(r.Logprobs) {
			t.parts.AddLogprobs(r.Logprobs[i])
		}
	}
	for _, d := range r.Calls {
		t.parts.AddCall(d)
	}
	if r.ChoiceEnd != nil {
		t.parts.EndChoice(r.ChoiceEnd.Finish)
	}
}

// transcript is the JSON content of the artifact.
type transcript struct {
	// Task is the id of a task whose answer can be deleted, so that no other one has the same artifact.
	Task      string `json:"task,omitempty"`
	Text      string `json:"transcript"`
	Reasoning string `json:"reasoning,omitempty"`
	// Parts has all parts in order, if there are calls of tools or several answers, or the reasoning is
	// not entirely before the text.
	Parts []Part `json:"parts,omitempty"`
	// Finishes are the finish reasons of all answers but the last one.
	Finishes []string `json:"finishes,omitempty"`
}

// ordered returns the parts of a transcript, in order.
func (t transcript) ordered() []Part {
	if t.Parts != nil {
		return t.Parts
	}
	return slices.DeleteFunc([]Part{{Text: t.Reasoning, Reasoning: true}, {Text: t.Text}}, func(p Part) bool { return p.Text == "" })
}

// mostLogprobs is the size of a content above which it has no probabilities, in bytes.
const mostLogprobs = 1 << 20

// Content returns the content of the artifact. task is the id of a task whose answer can be deleted, and
// empty for others. A content above 1 MiB has no probabilities.
func (t *Transcript) Content(task string) json.RawMessage {
	parts := t.parts.List()
	content := t.content(task, parts)
	if len(content) <= mostLogprobs || len(t.parts.Logprobs()) == 0 {
		return content
	}
	for i := range parts {
		parts[i].Logprobs = nil
	}
	return t.content(task, parts)
}

func (t *Transcript) content(task string, parts []Part) json.RawMessage {
	first := t.parts.Of(0)
	is := transcript{Task: task, Text: first.Joined(false), Reasoning: first.Joined(true), Finishes: t.parts.finishes}
	if !slices.EqualFunc(is.ordered(), parts, Part.same) {
		is.Parts = parts
	}
	content, _ := json.Marshal(is) //nolint:errchkjson // texts and finite numbers
	return content
}

// ReadTranscript returns the records of an answer from the content of its artifact, with the
// attempt.
func ReadTranscript(from io.Reader, attempt int) (records []Record, err error) {
	var t transcript
	if err := json.NewDecoder(from).Decode(&t); err != nil {
		return nil, fmt.Errorf("malformed transcript: %w", err)
	}
	choice := 0
	// endUntil ends the answers before one.
	endUntil := func(next int) {
		for ; choice < min(next, len(t.Finishes)); choice++ {
			records = append(records, Record{Attempt: attempt, ChoiceEnd: &ChoiceEnd{Index: choice, Finish: t.Finishes[choice]}})
		}
	}
	for _, p := range t.ordered() {
		endUntil(p.Choice)
		switch {
		case p.Call != nil:
			d := port.ToolDelta{Index: p.Call.Index, ID: p.Call.ID, Name: p.Call.Name, Arguments: p.Text}
			records = append(records, Record{Attempt: attempt, Calls: []port.ToolDelta{d}})
		case p.Reasoning:
			records = append(records, Record{Attempt: attempt, Reasoning: []string{p.Text}})
		default:
			r := Record{Attempt: attempt, Tokens: []string{p.Text}}
			if len(p.Logprobs) > 0 {
				r.Logprobs = [][]port.TokenLogprob{p.Logprobs}
			}
			records = append(records, r)
		}
	}
	endUntil(len(t.Finishes))
	return records, nil
}
