package usage_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/usage"
)

var at = time.Date(2026, 11, 29, 23, 59, 59, 0, time.FixedZone("west", -3600))

func TestEntriesOfACharge(t *testing.T) {
	t.Parallel()
	sum := usage.Sum{Tasks: 1, Tokens: usage.Tokens{Input: 5, Cached: 2, Output: 3}, TimeMS: 10, CostNano: 70}
	all := usage.Name{Day: "2026-11-30", Model: "m/1", Key: "k"}
	own := all
	own.Session = "s"
	for name, row := range map[string]struct {
		of   *usage.Charge
		want []usage.Entry
	}{
		"nothing":        {nil, nil},
		"zero":           {&usage.Charge{Model: "m", At: at}, nil},
		"no session":     {&usage.Charge{Model: "m/1", Key: "k", Sum: sum, At: at}, []usage.Entry{{"acme", all, sum}}},
		"with a session": {&usage.Charge{Model: "m/1", Key: "k", Session: "s", Sum: sum, At: at}, []usage.Entry{{"acme", all, sum}, {"acme", own, sum}}},
	} {
		got := row.of.Entries("acme")
		if len(got) != len(row.want) {
			t.Fatalf("%s: got %+v, want %+v", name, got, row.want)
		}
		for i := range got {
			if got[i] != row.want[i] {
				t.Errorf("%s: got %+v, want %+v", name, got[i], row.want[i])
			}
		}
	}
}

func TestIDsAreParsed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~]{0,6}`)
		n := usage.Name{Day: "2026-11-29", Model: text.Draw(t, "model"), Key: text.Draw(t, "key"), Session: text.Draw(t, "session")}
		if got, err := usage.ParseID(n.ID()); err != nil || got != n {
			t.Fatalf("got %+v, %v of %q, want %+v", got, err, n.ID(), n)
		}
	})
	for _, id := range []string{"", "#", "a#b#c", "a#b#c#d#e", "a#%zz##"} {
		if n, err := usage.ParseID(id); err == nil {
			t.Errorf("%q: got %+v, want an error", id, n)
		}
	}
}

func TestParseDimensions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "day": "", "model,key,session,day": "", "day,day": "twice", "days": "unknown", "day,": "unknown", ",": "unknown"} {
		_, err := usage.ParseDimensions(text)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestGroupsAddUp groups the entries of random charges by random dimensions. The rows of all pages
// must add up to the charges, and each group to its charges.
func TestGroupsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SliceOfNDistinct(rapid.SampledFrom(usage.Dimensions()), 0, 4, rapid.ID).Draw(t, "by")
		g := usage.NewGroups(by)
		var total usage.Sum
		own := map[string]usage.Sum{}
		var entries []usage.Entry
		for range rapid.IntRange(0, 30).Draw(t, "charges") {
			c := usage.Charge{
				Model: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"), Key: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key"),
				Session: rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "session"), At: at.AddDate(0, 0, rapid.IntRange(0, 2).Draw(t, "day")),
				Sum: usage.Sum{Tasks: 1, TimeMS: rapid.Int64Range(0, 9).Draw(t, "time")},
			}
			total = total.Plus(c.Sum)
			own[c.Session] = own[c.Session].Plus(c.Sum)
			entries = append(entries, c.Entries("acme")...)
		}
		for _, e := range usage.Merge(entries) {
			g.Add(e)
		}
		var sum usage.Sum
		bySession := map[string]usage.Sum{}
		for after, more := "", true; more; {
			var rows []usage.Entry
			rows, more = g.Rows(after, 2)
			for _, r := range rows {
				sum = sum.Plus(r.Sum)
				bySession[r.Session] = bySession[r.Session].Plus(r.Sum)
				if r.ID() <= after {
					t.Fatalf("got %s after %s", r.ID(), after)
				}
				after = r.ID()
			}
		}
		if sum != total {
			t.Fatalf("got %+v by %v, want %+v", sum, by, total)
		}
		if g.Sessions() {
			for s, want := range own {
				if bySession[s] != want {
					t.Fatalf("got %+v of session %q, want %+v", bySession[s], s, want)
				}
			}
		}
	})
}
