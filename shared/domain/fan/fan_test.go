package fan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/fan"
)

var epoch = time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)

func TestProductHasStableOrder(t *testing.T) {
	t.Parallel()
	axes := []fan.Axis{{Name: "region", Values: []string{"eu", "us"}}, {Name: "year", Values: []string{"2024", "2025"}}}
	var got []string
	for i, item := range fan.Product(axes) {
		got = append(got, item.Text)
		if item.Index != i {
			t.Errorf("got index %d of item %d", item.Index, i)
		}
	}
	want := []string{
		`{"region":"eu","year":"2024"}`, `{"region":"eu","year":"2025"}`, `{"region":"us","year":"2024"}`, `{"region":"us","year":"2025"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := fan.Size(slices.Repeat(axes, 5)); n != 1024 {
		t.Errorf("got a size of %d, want 1024", n)
	}
	if n := fan.Size(slices.Repeat(axes, 40)); n != fan.MaxChildren+1 {
		t.Errorf("got a size of %d, want the limit and one", n)
	}
}

func TestReadList(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		output, member string
		want           []string
		wrong          string
	}{
		"array":            {output: `["a", 2, {"b": 1}]`, want: []string{"a", "2", `{"b":1}`}},
		"empty array":      {output: " []\n"},
		"lines of arrays":  {output: "[1]\n[2]\n", want: []string{"[1]", "[2]"}},
		"malformed array":  {output: `["a", "b"`, wrong: "begins with [ and is no JSON array"},
		"array and a text": {output: `["a"] b`, wrong: "begins with [ and is no JSON array"},
		"array of lines":   {output: "\n[\n\"a\"\n\"b\"\n]", wrong: "begins with [ and is no JSON array"},
		"lines of Windows": {output: "\uFEFFa\r\nb\r\n", want: []string{"a", "b"}},
		"list of Windows":  {output: "\uFEFF[1, 2]\r\n", want: []string{"1", "2"}},
		"lines":            {output: "a\r\n\nb", want: []string{"a", "b"}},
		"nothing":          {},
		"object of lines":  {output: `{"a": 1}`, want: []string{`{"a": 1}`}},
		"member":           {output: `{"pages": {"urls": ["x"]}}`, member: "pages.urls", want: []string{"x"}},
		"missing member":   {output: `{"pages": {}}`, member: "pages.urls", wrong: "no member pages.urls"},
		"member, no list":  {output: `{"pages": 3}`, member: "pages", wrong: "no list"},
		"member of a text": {output: "a\n", member: "pages", wrong: "no member"},
		"binary":           {output: "\xff", wrong: "UTF-8"},
		"NUL":              {output: "a\x00", wrong: "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := fan.Read([]byte(row.output), row.member)
			if row.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), row.wrong) {
					t.Fatalf("got %v, want an error with %q", err, row.wrong)
				}
				return
			}
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
		})
	}
}

func TestCheckItems(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		texts []string
		wrong string
	}{
		"fits":     {texts: []string{"a", strings.Repeat("b", fan.MaxItem)}},
		"many":     {texts: make([]string, fan.MaxChildren+1), wrong: "10001 items, want at most 10000"},
		"long":     {texts: []string{"a", strings.Repeat("b", fan.MaxItem+1)}, wrong: "item 1 has 4097 bytes"},
		"together": {texts: slices.Repeat([]string{strings.Repeat("b", fan.MaxItem)}, 193), wrong: "want at most 786432"},
		"NUL":      {texts: []string{"a\x00"}, wrong: "item 0"},
	} {
		err := fan.Check(fan.ListOf(row.texts))
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: got %v, want %q", name, err, row.wrong)
		}
	}
}

func TestPartsAreTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var texts []string
		for _, length := range rapid.SliceOfN(rapid.IntRange(0, 3000), 0, 60).Draw(t, "lengths") {
			texts = append(texts, strings.Repeat("a", length))
		}
		items := fan.ListOf(texts)
		if got := slices.Concat(fan.Parts(items)...); len(got) != len(items) || fan.Digest(got) != fan.Digest(items) && len(items) > 0 {
			t.Errorf("got %d items, want %d", len(got), len(items))
		}
	})
}

// TestProgressOfAnyEnds counts drawn ends, also of children that are not active, twice.
func TestProgressOfAnyEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := fan.Spec{Parallel: rapid.IntRange(1, 7).Draw(t, "parallel"), MaxFailures: rapid.IntRange(0, 5).Draw(t, "failures")}
		p := spec.Begin(rapid.IntRange(0, 40).Draw(t, "total"), epoch)
		ended := map[int]fan.End{}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			n := rapid.IntRange(0, 40).Draw(t, "number")
			e := rapid.SampledFrom([]fan.End{fan.Succeeded, fan.Succeeded, fan.Succeeded, fan.Failed, fan.Cancelled}).Draw(t, "end")
			if slices.Contains(p.Active, n) {
				ended[n] = e
			}
			stopped := p.Stopped
			before := p.Started
			p = spec.Count(p, []fan.ChildEnd{{Number: n, End: e}, {Number: n, End: fan.Failed}})
			if stopped != "" && p.Started > before {
				t.Fatalf("%d children started after the stop", p.Started-before)
			}
		}
		counts, failed := p.Counts(), 0
		for n, e := range ended {
			if got, is := p.EndOf(n); !is || got != e {
				t.Errorf("child %d: got %c %v, want %c", n, got, is, e)
			}
			if e != fan.Succeeded {
				failed++
			}
		}
		sum := counts.Waiting + counts.Running + counts.Succeeded + counts.Failed + counts.Cancelled + counts.Skipped
		switch {
		case counts.Ended() != len(ended) || sum != p.Total:
			t.Errorf("got %+v after %d ends of %d", counts, len(ended), p.Total)
		case len(p.Active) > spec.Parallel:
			t.Errorf("%d children are active, want at most %d", len(p.Active), spec.Parallel)
		case spec.Exceeded(p) != (failed > spec.MaxFailures) || spec.Exceeded(p) != (p.Stopped == fan.StopFailures):
			t.Errorf("got stopped %q after %d failures of %d", p.Stopped, failed, spec.MaxFailures)
		case p.Over() != (counts.Running == 0 && counts.Waiting == 0):
			t.Errorf("got over %v with %+v", p.Over(), counts)
		case len(p.Unsuccessful()) != p.Total-p.Succeeded:
			t.Errorf("got %d unsuccessful children, want %d", len(p.Unsuccessful()), p.Total-p.Succeeded)
		}
	})
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	spec := fan.Spec{Parallel: 2}
	p := spec.Begin(5, epoch)
	p = spec.Count(p, []fan.ChildEnd{{0, fan.Failed}})
	if p.Stopped != fan.StopFailures || spec.CancelsActive(p) || p.Over() {
		t.Errorf("got %+v, want a stop that leaves the active child", p)
	}
	fast := spec
	fast.FailFast = true
	if !fast.CancelsActive(p) {
		t.Error("failFast leaves the active child")
	}
	if p = p.Stop(fan.StopDeadline); p.Stopped != fan.StopFailures {
		t.Errorf("got %s, want the first reason", p.Stopped)
	}
	if p = p.Stop(fan.StopCancelled); p.Stopped != fan.StopCancelled || !spec.CancelsActive(p) {
		t.Errorf("got %s, want cancelled", p.Stopped)
	}
	p = spec.Count(p, []fan.ChildEnd{{1, fan.Cancelled}})
	if got := p.Counts().String(); !p.Over() || got != "0 of 5 succeeded, 1 failed, 1 cancelled, 3 skipped" {
		t.Errorf("got %s, over %v", got, p.Over())
	}
	if e, ended := p.EndOf(4); e != fan.Skipped || !ended {
		t.Errorf("got %c %v, want skipped", e, ended)
	}
}
