package answer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// callsPerToken is the most parts of calls that an engine may send for a token. Parsers of engines
// split the text of a token.
const callsPerToken = 4

// addCalls adds parts of calls of tools. A first part without an id gets one, because clients need
// it for their answer.
func (w *Writer) addCalls(parts []port.ToolDelta) error {
	if w.calls += len(parts); w.calls > callsPerToken*(w.run.Work.Inference.MaxTokens+1) {
		return ErrSpent
	}
	if w.firstAt.IsZero() {
		w.firstAt = w.streams.clock.Now().UTC()
	}
	for _, d := range parts {
		if d.Name != "" && d.ID == "" {
			if d.ID = fmt.Sprintf("call_%s_%d", strings.TrimPrefix(w.run.TaskID, "inf_"), d.Index); w.choice > 0 {
				d.ID += fmt.Sprintf("_%d", w.choice)
			}
		}
		for len(d.Arguments) > pieceBatch {
			end := pieceBatch
			for !utf8.RuneStart(d.Arguments[end]) {
				end--
			}
			first := d
			first.Arguments = d.Arguments[:end]
			w.addCall(first)
			d = port.ToolDelta{Index: d.Index, Arguments: d.Arguments[end:]}
		}
		w.addCall(d)
	}
	w.wake()
	return nil
}

// addCall adds a part of a call to the last pending record, or as a new one.
func (w *Writer) addCall(d port.ToolDelta) {
	if n := len(w.pending); n > 0 && w.pending[n-1].Calls != nil && callSize(w.pending[n-1].Calls)+len(d.Arguments) <= pieceBatch {
		w.pending[n-1].Calls = append(w.pending[n-1].Calls, d)
	} else {
		w.pending = append(w.pending, inference.Record{Attempt: w.run.Attempt.Number, Calls: []port.ToolDelta{d}})
	}
}

func callSize(parts []port.ToolDelta) (n int) {
	for _, d := range parts {
		n += len(d.ID) + len(d.Name) + len(d.Arguments) + 32
	}
	return n
}

// logprobsSize returns an upper bound of the size of the probabilities of pieces in JSON, in bytes.
func logprobsSize(of [][]port.TokenLogprob) (n int) {
	for _, each := range of {
		n += logprobSize(each)
	}
	return n
}

// logprobSize is logprobsSize for one piece.
func logprobSize(of []port.TokenLogprob) (n int) {
	const perByte = 4
	for _, p := range of {
		n += perSection + perNumber + escaped*len(p.Token) + perByte*len(p.Bytes) + logprobSize(p.Top)
	}
	return n
}

// The most bytes of JSON for a byte of a text, for a number, and for the other members of a record.
const (
	escaped    = 6
	perNumber  = 26
	perRecord  = 512
	perSection = 40
)

// fitting returns how many of the first records fit into a batch of a feed, at least one.
func fitting(records []inference.Record) int {
	room := port.MaxFeedBatch
	for i, r := range records {
		most := perRecord + escaped*(size(r.Tokens)+size(r.Reasoning)+callSize(r.Calls)) + perSection*(len(r.Tokens)+len(r.Reasoning)+len(r.Calls))
		most += logprobsSize(r.Logprobs)
		if r.Result != nil {
			most += perNumber * len(r.Result.Embedding)
		}
		if room -= most; i > 0 && room < 0 || i == port.MaxFeedRecords {
			return i
		}
	}
	return len(records)
}
