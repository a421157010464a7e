package units_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
)

func TestUnitsCountSizeAndIndexes(t *testing.T) {
	t.Parallel()
	type item map[string]string
	small := item{"pk": "a", "sk": "b"}
	large := item{"pk": "a", "sk": "b", "x": strings.Repeat("x", 1500)}
	half := item{"pk": "a", "sk": "b", "due": "1"}
	due := item{"pk": "a", "sk": "b", "due": "1", "at": "12"}
	later := item{"pk": "a", "sk": "b", "due": "1", "at": "13"}
	listed := item{"pk": "a", "sk": "b", "list": "1", "born": "2", "x": "not projected"}
	ended := item{"pk": "a", "sk": "b", "list": "1", "born": "2", "end": "Completed"}
	for name, row := range map[string]struct {
		before, after item
		units         float64
	}{
		"created":                        {nil, small, 1},
		"deleted":                        {large, nil, 2},
		"unchanged":                      {nil, nil, 1},
		"larger":                         {small, large, 2},
		"into an index":                  {small, due, 2},
		"without the whole key":          {small, half, 1},
		"moved in an index":              {due, later, 3},
		"out of an index":                {due, small, 2},
		"untouched in the due":           {due, due, 1},
		"changed in its place":           {listed, ended, 2},
		"changed outside the projection": {listed, item{"pk": "a", "sk": "b", "list": "1", "born": "2"}, 1},
	} {
		if counted := units.Written(row.before, row.after, func(v string) int { return len(v) }); counted != row.units {
			t.Errorf("%s: got %v units, want %v", name, counted, row.units)
		}
	}
}

func TestSizeOfNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 1, "7": 2, "-12": 2, "123": 3, "1700000000": 2, "1234567890": 6} {
		if size := units.Number(text); size != want {
			t.Errorf("%s: got %d bytes, want %d", text, size, want)
		}
	}
}
