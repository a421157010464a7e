package worker

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/samples"
)

// at serves a collection instead of the fixture's archive.
func (b *bench) at(c *samples.Collection) {
	b.t.Helper()
	var handler http.Handler = c.Handler(newHasty())
	server := httptest.NewServer(handler)
	b.t.Cleanup(server.Close)
	b.config.SourceURL = server.URL
	b.config.PI = mustPI(b.t, c.Roots()[0].PI)
}

func TestGeneratedCollections(t *testing.T) {
	t.Parallel()
	all := map[samples.Defect]int{}
	for _, defect := range samples.Defects() {
		all[defect] = 2
	}
	for _, row := range []struct {
		name  string
		shape samples.Shape
		depth int
	}{
		{"healthy", samples.Shape{Entities: 60}, 10},
		{"chain", samples.Shape{Entities: 40, Fanout: 1}, 25},
		{"star", samples.Shape{Entities: 80, Fanout: 79}, 1},
		{"every defect", samples.Shape{Entities: 120, Count: all, Delay: time.Millisecond}, 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, err := samples.Generate(11, row.shape)
			if err != nil {
				t.Fatal(err)
			}
			o := recursive()
			o.MaxDepth = row.depth
			b := newBench(t, "mods", o)
			b.at(c)
			r, doc := b.mustRun()
			want := c.Expect(c.Roots()[0].PI, samples.ExportOptions{Recursive: true, MaxDepth: row.depth})
			wantCounts(t, r, want.Exported, want.Incomplete, want.Failed)
			wantValid(t, doc)
			if err := wantWellFormed(doc); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSameBytesOnEveryRun checks that the bytes do not depend on the number of entities in
// flight or on their order.
func TestSameBytesOnEveryRun(t *testing.T) {
	t.Parallel()
	c, err := samples.Generate(3, samples.Shape{
		Entities: 60, Fanout: 4, Count: map[samples.Defect]int{samples.Busy: 6, samples.Cut: 6, samples.Cycle: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range FormatNames() {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			first := ""
			for _, batch := range []int{1, 7} {
				o := recursive()
				o.ParallelBatchSize = batch
				b := newBench(t, format, o)
				b.at(c)
				_, doc := b.mustRun()
				wantValid(t, doc)
				if first == "" {
					first = doc
				}
				if doc != first {
					t.Errorf("%d in flight: got another document, want the document of the first batch size", batch)
				}
			}
		})
	}
}

func TestSampleIsComplete(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", recursive())
	b.at(samples.Sample())
	r, doc := b.mustRun()
	wantCounts(t, r, 72, 0, 0)
	wantValid(t, doc)
}
