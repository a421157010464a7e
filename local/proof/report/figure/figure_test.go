package figure_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

func report(figures ...figure.Figure) map[string]*figure.Part {
	return map[string]*figure.Part{"speed": {Name: "speed", Title: "Speed", Figures: figures}}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	rate := figure.Figure{Name: "rate", Value: 100, Unit: "runs/s", Better: figure.More, Noise: 0.1}
	lost := figure.Figure{Name: "lost", Better: figure.Less, Goal: "0"}
	size := figure.Figure{Name: "size", Value: 5}
	with := func(f figure.Figure, value float64, missed bool) figure.Figure {
		f.Value, f.Missed = value, missed
		return f
	}
	for name, c := range map[string]struct {
		was, is []figure.Figure
		want    []string
		worse   bool
	}{
		"within the noise":     {[]figure.Figure{rate}, []figure.Figure{with(rate, 90, false)}, nil, false},
		"slower":               {[]figure.Figure{rate}, []figure.Figure{with(rate, 89, false)}, []string{"speed: rate: was 100 runs/s, is 89 runs/s (-11 %)"}, true},
		"faster":               {[]figure.Figure{rate}, []figure.Figure{with(rate, 150, false)}, []string{"speed: rate: was 100 runs/s, is 150 runs/s (+50 %)"}, false},
		"a goal is missed now": {[]figure.Figure{lost}, []figure.Figure{with(lost, 1, true)}, []string{"speed: lost: was 0, is 1, misses its goal of 0"}, true},
		"without a direction":  {[]figure.Figure{size}, []figure.Figure{with(size, 6, false)}, []string{"speed: size: was 5, is 6 (+20 %)"}, false},
		"gone":                 {[]figure.Figure{rate, size}, []figure.Figure{size}, []string{"speed: rate: was 100 runs/s, is not measured now"}, true},
	} {
		changes, alone := figure.Compare(report(c.was...), report(c.is...))
		var got []string
		worse := false
		for _, change := range changes {
			got = append(got, change.String())
			worse = worse || change.Worse
		}
		if !slices.Equal(got, c.want) || worse != c.worse || len(alone) > 0 {
			t.Errorf("%s: got %q, worse %t, alone %q; want %q, worse %t", name, got, worse, alone, c.want, c.worse)
		}
	}
	if _, alone := figure.Compare(report(rate), map[string]*figure.Part{}); !slices.Equal(alone, []string{"speed"}) {
		t.Errorf("a part that is gone: got %q alone, want speed", alone)
	}
}

func TestPageNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	parts := report(figure.Figure{Name: "lost", Value: 2, Goal: "0", Missed: true}, figure.Figure{Name: "latency", Value: 3.14159, Unit: "ms", Noise: 0.2})
	page := figure.Page([]string{"speed", "peers"}, parts)
	for _, want := range []string{"Not measured: peers.", "| lost | **2** | 0 |  |", "| latency | 3.14 ms |  | 20 % |", "[Speed](#speed)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestSavedPartIsLoaded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := report(figure.Figure{Name: "rate", Value: 1.5})["speed"]
	if err := p.Save(folder); err != nil {
		t.Fatal(err)
	}
	parts, err := figure.Load(folder)
	if err != nil || len(parts) != 1 || parts["speed"].Figures[0] != p.Figures[0] {
		t.Errorf("got %v, %v; want the saved part", parts, err)
	}
	for name, text := range map[string]string{"other.json": `{"name": "speed"}`, "broken.json": `{`, "notes.txt": ""} {
		bad := t.TempDir()
		if err := os.WriteFile(filepath.Join(bad, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := figure.Load(bad); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(name, ".txt")) {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
	}
}
