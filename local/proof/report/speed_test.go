package main

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

func TestQuantitiesOfARow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row  benchRow
		want []figure.Figure
	}{
		{benchRow{"runs", "runs/s, 50 in flight", "597"}, []figure.Figure{{Name: "runs: runs/s, 50 in flight", Value: 597, Better: figure.More}}},
		{benchRow{"runs", "POST to the end, p50 / p99", "3 / 8.5 ms"}, []figure.Figure{
			{Name: "runs: POST to the end, p50", Value: 3, Unit: "ms", Better: figure.Less},
			{Name: "runs: POST to the end, p99", Value: 8.5, Unit: "ms", Better: figure.Less},
		}},
		{benchRow{"load", "runs, failed", "1500, 2"}, []figure.Figure{{Name: "load: runs", Value: 1500}, {Name: "load: failed", Value: 2}}},
		{benchRow{"load", "calls", "12 of 40"}, []figure.Figure{{Name: "load: calls, number 1", Value: 12, Unit: "of"}, {Name: "load: calls, number 2", Value: 40, Unit: "of"}}},
		{benchRow{"load", "refused calls", "none"}, nil},
	} {
		var p figure.Part
		addQuantities(&p, c.row, 0)
		if len(p.Figures) != len(c.want) {
			t.Errorf("%v: got %+v, want %+v", c.row, p.Figures, c.want)
			continue
		}
		for i := range c.want {
			if p.Figures[i] != c.want[i] {
				t.Errorf("%v: got %+v, want %+v", c.row, p.Figures[i], c.want[i])
			}
		}
	}
}
