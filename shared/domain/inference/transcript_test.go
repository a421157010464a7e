package inference_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestTranscriptKeepsTheOrder(t *testing.T) {
	t.Parallel()
	think, say := func(pieces ...string) inference.Record { return inference.Record{Attempt: 1, Reasoning: pieces} }, func(pieces ...string) inference.Record {
		return inference.Record{Attempt: 1, Tokens: pieces}
	}
	call := func(index int, id, name, arguments string) inference.Record {
		return inference.Record{Attempt: 1, Calls: []port.ToolDelta{{Index: index, ID: id, Name: name, Arguments: arguments}}}
	}
	likely := func(text string) inference.Record {
		return inference.Record{Attempt: 1, Tokens: []string{text}, Logprobs: [][]port.TokenLogprob{{{Token: text, Logprob: -1}}}}
	}
	for name, row := range map[string]struct {
		records, want []inference.Record
		content       string
	}{
		"nothing":          {nil, nil, `{"transcript":""}`},
		"answer":           {[]inference.Record{say("a", "b"), say("c")}, []inference.Record{say("abc")}, `{"transcript":"abc"}`},
		"reasoning":        {[]inference.Record{think("a"), think("b")}, []inference.Record{think("ab")}, `{"transcript":"","reasoning":"ab"}`},
		"reasoning before": {[]inference.Record{think("a"), think("b"), say("c")}, []inference.Record{think("ab"), say("c")}, `{"transcript":"c","reasoning":"ab"}`},
		"reasoning between": {
			[]inference.Record{think("a"), say("b"), think("c"), say("d")},
			[]inference.Record{think("a"), say("b"), think("c"), say("d")},
			`{"transcript":"bd","reasoning":"ac","parts":[{"text":"a","reasoning":true},{"text":"b"},{"text":"c","reasoning":true},{"text":"d"}]}`,
		},
		"reasoning after": {
			[]inference.Record{say("b"), think("c")},
			[]inference.Record{say("b"), think("c")},
			`{"transcript":"b","reasoning":"c","parts":[{"text":"b"},{"text":"c","reasoning":true}]}`,
		},
		"probabilities": {
			[]inference.Record{likely("a"), likely("b"), say("c")},
			[]inference.Record{{Attempt: 1, Tokens: []string{"abc"}, Logprobs: [][]port.TokenLogprob{{{Token: "a", Logprob: -1}, {Token: "b", Logprob: -1}}}}},
			`{"transcript":"abc","parts":[{"text":"abc","logprobs":[{"token":"a","logprob":-1},{"token":"b","logprob":-1}]}]}`,
		},
		"calls": {
			[]inference.Record{say("a"), call(0, "c1", "f", "{"), call(1, "c2", "g", "{}"), call(0, "", "", "}")},
			[]inference.Record{say("a"), call(0, "c1", "f", "{}"), call(1, "c2", "g", "{}")},
			`{"transcript":"a","parts":[{"text":"a"},{"text":"{}","call":{"index":0,"id":"c1","name":"f"}},{"text":"{}","call":{"index":1,"id":"c2","name":"g"}}]}`,
		},
	} {
		var of inference.Transcript
		for _, r := range row.records {
			of.Add(r)
		}
		got, err := inference.ReadTranscript(bytes.NewReader(of.Content("")), 1)
		if string(of.Content("")) != row.content || err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: got %s and %+v (%v), want %s and %+v", name, of.Content(""), got, err, row.content, row.want)
		}
	}
}
