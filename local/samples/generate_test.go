package samples_test

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/samples/cid"
)

// In a star, every entity except the root is a leaf. A defect therefore affects no other
// entity.
func TestDefectOutcomes(t *testing.T) {
	t.Parallel()
	const n = 20
	all := samples.Expectation{Exported: n}
	tests := map[samples.Defect]samples.Expectation{
		samples.Cycle:       all,
		samples.Repeated:    all,
		samples.Unlisted:    {Exported: n - 3},
		samples.Unsigned:    all,
		samples.NoPinax:     {Exported: n, Incomplete: 3},
		samples.BrokenPinax: {Exported: n, Incomplete: 3},
		samples.HugePinax:   {Exported: n, Incomplete: 3},
		samples.LostPinax:   {Exported: n, Incomplete: 3},
		samples.WrongCID:    {Exported: n, Incomplete: 3},
		samples.EmptyOCR:    all,
		samples.ControlOCR:  all,
		samples.Merged:      {Exported: n - 3, Failed: 3},
		samples.Deleted:     {Exported: n - 3, Failed: 3},
		samples.Missing:     {Exported: n - 3, Failed: 3},
		samples.Busy:        all,
		samples.Down:        {Exported: n - 3, Failed: 3},
		samples.Cut:         all,
		samples.Slow:        all,
	}
	for _, defect := range samples.Defects() {
		t.Run(string(defect), func(t *testing.T) {
			t.Parallel()
			want, ok := tests[defect]
			if !ok {
				t.Fatal("no expected outcome")
			}
			c := mustGenerate(t, 5, samples.Shape{Entities: n, Fanout: n, Count: map[samples.Defect]int{defect: 3}})
			root := c.Roots()[0].PI
			if got := c.Expect(root, samples.ExportOptions{Recursive: true, MaxDepth: 5}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			c = mustGenerate(t, 5, samples.Shape{Entities: n, Fanout: n, Root: defect})
			got := c.Expect(c.Roots()[0].PI, samples.ExportOptions{Recursive: true, MaxDepth: 5})
			switch {
			case want.Failed > 0 && got != (samples.Expectation{Fails: true, Failed: 1}):
				t.Errorf("with a defective root: got %+v", got)
			case want.Failed == 0 && (got.Fails || got.Exported != n || got.Incomplete != want.Incomplete/3):
				t.Errorf("with a defective root: got %+v", got)
			}
		})
	}
}

func TestMaxDepth(t *testing.T) {
	t.Parallel()
	c := mustGenerate(t, 1, samples.Shape{Entities: 31, Fanout: 2}) // 1, 2, 4, 8, 16
	tests := map[string]struct {
		options samples.ExportOptions
		want    int
	}{
		"not recursive":       {samples.ExportOptions{MaxDepth: 5}, 1},
		"depth 0 is the root": {samples.ExportOptions{Recursive: true}, 1},
		"depth 2":             {samples.ExportOptions{Recursive: true, MaxDepth: 2}, 7},
		"deeper than it is":   {samples.ExportOptions{Recursive: true, MaxDepth: 50}, 31},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.Expect(c.Roots()[0].PI, tt.options); got != (samples.Expectation{Exported: tt.want}) {
				t.Errorf("got %+v, want %d exported", got, tt.want)
			}
		})
	}
	if got := c.Expect("01K9XVBAQZF9EHDRXGBEADTZYY", samples.ExportOptions{}); got != (samples.Expectation{Fails: true, Failed: 1}) {
		t.Errorf("unknown root: got %+v", got)
	}
}

// The test has its own simple exporter, which counts the entities that it reads over HTTP.
// Expect must return the same counts.
func TestExpectMatchesServedEntities(t *testing.T) {
	t.Parallel()
	rate := map[samples.Defect]float64{}
	for _, defect := range samples.Defects() {
		rate[defect] = 0.02
	}
	delete(rate, samples.Slow)
	delete(rate, samples.HugePinax) // one is sufficient, because it has 5 MiB
	for seed := range uint64(3) {
		c := mustGenerate(t, seed, samples.Shape{
			Entities: 120, Fanout: 3 + int(seed), TextBytes: 50, Rate: rate, Count: map[samples.Defect]int{samples.HugePinax: 1}, Times: 3,
		})
		root := c.Roots()[0].PI
		want := c.Expect(root, samples.ExportOptions{Recursive: true, MaxDepth: math.MaxInt})
		if want.Fails || want.Failed == 0 || want.Incomplete == 0 {
			t.Fatalf("seed %d: got no counts in %+v", seed, want)
		}
		if got := crawl(serve(t, c), root); got != want {
			t.Errorf("seed %d: got %+v, want %+v", seed, got, want)
		}
	}
}

func crawl(c *client, root string) (sum samples.Expectation) {
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
	for _, c := range []*samples.Collection{samples.Sample(), fromEAD(t), mustGenerate(t, 3, samples.Shape{Entities: 500})} {
		_, entities := serve(t, c).all(c)
		for _, m := range entities {
			id, err := ulid.ParseStrict(m.PI)
			if err != nil || !form.MatchString(m.PI) || seen[m.PI] {
				t.Fatalf("invalid or repeated PI %q: %v", m.PI, err)
			}
			if at := ulid.Time(id.Time()).UTC().Format("2006-01-02T15:04:05.000Z"); at != "2025-11-13T05:34:54.719Z" {
				t.Fatalf("%s: got time %s", m.PI, at)
			}
			seen[m.PI] = true
		}
	}
}

func TestInvalidShapes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		shape samples.Shape
		want  string
	}{
		"more defects than entities": {samples.Shape{Entities: 3, Count: map[samples.Defect]int{samples.Slow: 3}}, "3 defects for 2"},
		"an unknown defect":          {samples.Shape{Entities: 3, Count: map[samples.Defect]int{"plague": 1}}, "plague"},
		"an unknown defect by rate":  {samples.Shape{Entities: 3, Rate: map[samples.Defect]float64{"plague": 0}}, "plague"},
		"a rate over 1":              {samples.Shape{Entities: 3, Rate: map[samples.Defect]float64{samples.Slow: 1.5}}, "1.5"},
		"no rate at all":             {samples.Shape{Entities: 3, Rate: map[samples.Defect]float64{samples.Slow: math.NaN()}}, "NaN"},
		"an unknown root":            {samples.Shape{Root: "plague"}, "plague"},
		"negative":                   {samples.Shape{Entities: -1}, "negative"},
		"too many":                   {samples.Shape{Entities: 1 << 25}, "more than"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := samples.Generate(1, tt.shape); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	if c := mustGenerate(t, 9, samples.Shape{}); c.Len() != 1 || c.Roots()[0].Entities != 1 {
		t.Error("the zero shape does not have one entity")
	}
}

func TestOCRDefects(t *testing.T) {
	t.Parallel()
	tests := map[samples.Defect]string{samples.EmptyOCR: `"ocr": ""`, samples.ControlOCR: `\u0007`}
	for defect, want := range tests {
		t.Run(string(defect), func(t *testing.T) {
			t.Parallel()
			c := mustGenerate(t, 1, samples.Shape{Root: defect})
			client := serve(t, c)
			if text := client.component(client.entity(c.Roots()[0].PI), "note.ref.json"); !strings.Contains(text, want) {
				t.Errorf("%s lacks %s", text, want)
			}
		})
	}
}
