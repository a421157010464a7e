package samples_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/samples"
)

func TestSampleHas72Entities(t *testing.T) {
	t.Parallel()
	c := samples.Sample()
	if roots := c.Roots(); len(roots) != 1 || roots[0] != (samples.Root{PI: samples.SampleRoot, Title: "Audiotape 281", Entities: 72}) {
		t.Fatalf("got roots %+v", roots)
	}
	client := serve(t, c)
	texts, entities := client.all(c)
	if len(entities) != 72 || c.Len() != 72 {
		t.Fatalf("got %d entities served, %d counted", len(entities), c.Len())
	}
	first, last := client.pinax(entities[1]), client.pinax(entities[71])
	if first.Title != "White House Tapes: Conversation 281-001" || last.Title != "White House Tapes: Conversation 281-071" {
		t.Errorf("got %q to %q", first.Title, last.Title)
	}
	if first.Created != "1971-10-21" || strings.Join(first.Creator, "; ") != "Nixon, Richard M. (President); Buchanan, Patrick J." {
		t.Errorf("first conversation: got %+v", first)
	}
	persons, participations := map[string]bool{}, 0
	for _, m := range entities[1:] {
		creators := client.pinax(m).Creator
		participations += len(creators)
		for _, name := range creators {
			persons[name] = true
		}
	}
	// 143 participations of 15 parties, minus 8 of one unidentified party.
	if participations != 135 || len(persons) != 14 {
		t.Errorf("got %d participations of %d parties", participations, len(persons))
	}
	if !strings.Contains(texts[0], "It is not a transcript") {
		t.Error("the note lacks its disclaimer")
	}
}

func TestSameBytesEveryTime(t *testing.T) {
	t.Parallel()
	// A change of these digests changes stored PIs, CIDs and exports, so it must be deliberate.
	tests := map[string]struct {
		collection *samples.Collection
		want       string
	}{
		"sample":              {samples.Sample(), "65d5f1a806a39ad5"},
		"finding aids":        {fromEAD(t), "bdeda99687fc5abb"},
		"seed 1":              {mustGenerate(t, 1, samples.Shape{Entities: 60, Fanout: 4, TextBytes: 80}), "d1f2abd23706251a"},
		"seed 2":              {mustGenerate(t, 2, samples.Shape{Entities: 60, Fanout: 4, TextBytes: 80}), "5ae4b5280a0d94c2"},
		"seed 1 with defects": {mustGenerate(t, 1, samples.Shape{Entities: 60, Fanout: 59, TextBytes: 80, Rate: map[samples.Defect]float64{samples.NoPinax: 0.5}}), "9cd19aae500be857"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := serve(t, tt.collection)
			h := sha256.New()
			texts, entities := client.all(tt.collection)
			for i, m := range entities {
				line, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(h, "%s\n%s\n", line, texts[i])
			}
			if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != tt.want {
				t.Errorf("got digest %s, want %s", got, tt.want)
			}
		})
	}
}
