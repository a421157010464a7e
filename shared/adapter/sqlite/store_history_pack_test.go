package sqlite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestHistoryIsPackedAtItsEnd adds events to histories: to an empty one, and to one of the
// parts that earlier versions wrote. All are read again at each step, and the history is packed
// when it has filled a page and when the run has ended.
func TestHistoryIsPackedAtItsEnd(t *testing.T) {
	t.Parallel()
	event := func(seq int) record {
		doc, err := json.Marshal(run.Event{Seq: seq, Message: strings.Repeat(fmt.Sprint(seq), 300)})
		if err != nil {
			t.Fatal(err)
		}
		return record{Write: &port.Write{Events: []run.Event{{Seq: seq}}}, events: [][]byte{doc}}
	}
	older, err := joinHistory(nil, historyOf(event(1)), true)
	if err != nil || older[0] == unpackedPart {
		t.Fatalf("got %.9x, %v, want a packed part", older, err)
	}
	for name, history := range map[string][]byte{"new": nil, "packed before": older} {
		n, packs := 0, 0
		if history != nil {
			n = 1
		}
		for n < historyEvents {
			n++
			ended := n == historyEvents
			before := len(history)
			if history, err = joinHistory(history, historyOf(event(n)), ended); err != nil {
				t.Fatal(err)
			}
			if len(history) < before {
				packs++
			}
			if len(history) > unpackedMost {
				t.Errorf("%s: got a history of %d bytes", name, len(history))
			}
			docs, err := historyDocs(history)
			var events []run.Event
			if err != nil || json.Unmarshal(arrayOf(docs), &events) != nil || len(events) != n || events[n-1].Seq != n {
				t.Fatalf("%s: got %d events, %v, want %d", name, len(events), err, n)
			}
			if ended && len(docs) != 1 {
				t.Errorf("%s: got %d parts at the end, want one", name, len(docs))
			}
		}
		if packs == 0 || packs > 5 {
			t.Errorf("%s: packed %d times, want at its end and for each page", name, packs)
		}
	}
}
