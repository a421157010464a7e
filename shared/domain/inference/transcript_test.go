package inference_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/inference"
)

func TestTranscriptKeepsTheOrder(t *testing.T) {
	t.Parallel()
	think, say := func(pieces ...string) inference.Record { return inference.Record{Attempt: 1, Reasoning: pieces} }, func(pieces ...string) inference.Record {
		return inference.Record{Attempt: 1, Tokens: pieces}
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
	} {
		var of inference.Transcript
		for _, r := range row.records {
			of.Add(r)
		}
		got, err := inference.ReadTranscript(bytes.NewReader(of.Content()), 1)
		if string(of.Content()) != row.content || err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: got %s and %+v (%v), want %s and %+v", name, of.Content(), got, err, row.content, row.want)
		}
	}
}
