package collection_test

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/local/collection"
	"github.com/sortie-dev/sortie/local/collection/cid"
)

// In a star every entity but the root is a leaf, so that an ill costs what it
// costs and nothing else.
func TestEachIllHasItsOutcome(t *testing.T) {
	t.Parallel()
	const n = 20
	all := collection.Expectation{Exported: n}
	tests := map[collection.Ill]collection.Expectation{
		collection.Cycle:       all,
		collection.Repeated:    all,
		collection.Unlisted:    {Exported: n - 3},
		collection.Unsigned:    all,
		collection.NoPinax:     {Exported: n, Incomplete: 3},
		collection.BrokenPinax: {Exported: n, Incomplete: 3},
		collection.HugePinax:   {Exported: n, Incomplete: 3},
		collection.LostPinax:   {Exported: n, Incomplete: 3},
		collection.WrongCID:    {Exported: n, Incomplete: 3},
		collection.EmptyOCR:    all,
		collection.ControlOCR:  all,
		collection.Merged:      {Exported: n - 3, Failed: 3},
		collection.Deleted:     {Exported: n - 3, Failed: 3},
		collection.Missing:     {Exported: n - 3, Failed: 3},
		collection.Busy:        all,
		collection.Down:        {Exported: n - 3, Failed: 3},
		collection.Cut:         all,
		collection.Slow:        all,
	}
	for _, ill := range collection.Ills() {
		t.Run(string(ill), func(t *testing.T) {
			t.Parallel()
			want, ok := tests[ill]
			if !ok {
				t.Fatal("no outcome is stated")
			}
			c := mustGenerate(t, 5, collection.Shape{Entities: n, Fanout: n, Count: map[collection.Ill]int{ill: 3}})
			root := c.Roots()[0].PI
			if got := c.Expect(root, collection.ExportOptions{Recursive: true, MaxDepth: 5}); got != want {
				t.Errorf("expects %+v, want %+v", got, want)
			}
			c = mustGenerate(t, 5, collection.Shape{Entities: n, Fanout: n, Root: ill})
			got := c.Expect(c.Roots()[0].PI, collection.ExportOptions{Recursive: true, MaxDepth: 5})
			switch {
			case want.Failed > 0 && got != (collection.Expectation{Fails: true, Failed: 1}):
				t.Errorf("with an ill root expects %+v", got)
			case want.Failed == 0 && (got.Fails || got.Exported != n || got.Incomplete != want.Incomplete/3):
				t.Errorf("with an ill root expects %+v", got)
			}
		})
	}
}

func TestDepthBoundsAnExport(t *testing.T) {
	t.Parallel()
	c := mustGenerate(t, 1, collection.Shape{Entities: 31, Fanout: 2}) // 1, 2, 4, 8, 16
	tests := map[string]struct {
		options collection.ExportOptions
		want    int
	}{
		"not recursive":       {collection.ExportOptions{MaxDepth: 5}, 1},
		"depth 0 is the root": {collection.ExportOptions{Recursive: true}, 1},
		"depth 2":             {collection.ExportOptions{Recursive: true, MaxDepth: 2}, 7},
		"deeper than it is":   {collection.ExportOptions{Recursive: true, MaxDepth: 50}, 31},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.Expect(c.Roots()[0].PI, tt.options); got != (collection.Expectation{Exported: tt.want}) {
				t.Errorf("%+v, want %d exported", got, tt.want)
			}
		})
	}
	if got := c.Expect("01K9XVBAQZF9EHDRXGBEADTZYY", collection.ExportOptions{}); got != (collection.Expectation{Fails: true, Failed: 1}) {
		t.Errorf("an unknown root: %+v", got)
	}
}

// The expectation and the server must tell the same story: a plain exporter,
// written here, counts what it sees over HTTP.
func TestWhatIsServedIsWhatIsExpected(t *testing.T) {
	t.Parallel()
	rate := map[collection.Ill]float64{}
	for _, ill := range collection.Ills() {
		rate[ill] = 0.02
	}
	delete(rate, collection.Slow)
	delete(rate, collection.HugePinax) // one is enough: it is 5 MiB
	for seed := range uint64(3) {
		c := mustGenerate(t, seed, collection.Shape{
			Entities: 120, Fanout: 3 + int(seed), TextBytes: 50, Rate: rate, Count: map[collection.Ill]int{collection.HugePinax: 1}, Times: 3,
		})
		root := c.Roots()[0].PI
		want := c.Expect(root, collection.ExportOptions{Recursive: true, MaxDepth: math.MaxInt})
		if want.Fails || want.Failed == 0 || want.Incomplete == 0 {
			t.Fatalf("seed %d: nothing to see in %+v", seed, want)
		}
		if got := crawl(serve(t, c), root); got != want {
			t.Errorf("seed %d: served %+v, expected %+v", seed, got, want)
		}
	}
}

func crawl(c *client, root string) (sum collection.Expectation) {
	seen := map[string]bool{root: true}
	again := func(path string) (status int, body []byte) {
		for range 8 {
			if status, body = c.get(path); status != 0 && status != http.StatusServiceUnavailable {
				break
			}
		}
		return status, body
	}
	for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
		status, body := again("/entities/" + queue[0])
		var m manifest
		if status != http.StatusOK || json.Unmarshal(body, &m) != nil || len(m.Components) == 0 {
			sum.Failed++
			continue
		}
		sum.Exported++
		complete := false
		for name, id := range m.Components {
			status, body := again("/cat/" + id)
			if status != http.StatusOK || string(cid.Raw(body)) != id {
				complete = false
				break
			}
			if name == "pinax.json" {
				complete = json.Valid(body) && len(body) <= 4<<20
			}
		}
		if !complete {
			sum.Incomplete++
		}
		for _, pi := range m.Children {
			if !seen[pi] {
				seen[pi] = true
				queue = append(queue, pi)
			}
		}
	}
	return sum
}

func TestPIsAreULIDs(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`)
	seen := map[string]bool{}
	for _, c := range []*collection.Collection{collection.Sample(), fromEAD(t), mustGenerate(t, 3, collection.Shape{Entities: 500})} {
		_, entities := serve(t, c).all(c)
		for _, m := range entities {
			id, err := ulid.ParseStrict(m.PI)
			if err != nil || !form.MatchString(m.PI) || seen[m.PI] {
				t.Fatalf("%q is no PI or is there twice: %v", m.PI, err)
			}
			if at := ulid.Time(id.Time()).UTC().Format("2006-01-02T15:04:05.000Z"); at != "2025-11-13T05:34:54.719Z" {
				t.Fatalf("%s was made at %s", m.PI, at)
			}
			seen[m.PI] = true
		}
	}
}

func TestShapesThatCannotBe(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		shape collection.Shape
		want  string
	}{
		"more ill than there are": {collection.Shape{Entities: 3, Count: map[collection.Ill]int{collection.Slow: 3}}, "3 ills for 2"},
		"an unknown ill":          {collection.Shape{Entities: 3, Count: map[collection.Ill]int{"plague": 1}}, "plague"},
		"an unknown ill by rate":  {collection.Shape{Entities: 3, Rate: map[collection.Ill]float64{"plague": 0}}, "plague"},
		"a rate over 1":           {collection.Shape{Entities: 3, Rate: map[collection.Ill]float64{collection.Slow: 1.5}}, "1.5"},
		"no rate at all":          {collection.Shape{Entities: 3, Rate: map[collection.Ill]float64{collection.Slow: math.NaN()}}, "NaN"},
		"an unknown root":         {collection.Shape{Root: "plague"}, "plague"},
		"negative":                {collection.Shape{Entities: -1}, "negative"},
		"too many":                {collection.Shape{Entities: 1 << 25}, "more than"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := collection.Generate(1, tt.shape); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
	if c := mustGenerate(t, 9, collection.Shape{}); c.Len() != 1 || c.Roots()[0].Entities != 1 {
		t.Error("the zero shape is not one entity")
	}
}

func TestOCRIsIllAsItShouldBe(t *testing.T) {
	t.Parallel()
	tests := map[collection.Ill]string{collection.EmptyOCR: `"ocr": ""`, collection.ControlOCR: `\u0007`}
	for ill, want := range tests {
		t.Run(string(ill), func(t *testing.T) {
			t.Parallel()
			c := mustGenerate(t, 1, collection.Shape{Root: ill})
			client := serve(t, c)
			if text := client.component(client.entity(c.Roots()[0].PI), "note.ref.json"); !strings.Contains(text, want) {
				t.Errorf("%s has no %s", text, want)
			}
		})
	}
}
