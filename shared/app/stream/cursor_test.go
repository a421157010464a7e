package stream

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestCursorForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Cursor{
		"0": {}, "a-0": {"a", 0}, "e1-12": {"e1", 12}, strings.Repeat("z", 32) + "-9223372036854775807": {strings.Repeat("z", 32), 1<<63 - 1},
	} {
		if got, ok := ParseCursor(text); !ok || got != want || got.String() != text {
			t.Errorf("%s: got %+v %q, %t, want %+v", text, got, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "1", "00", "a", "a-", "-1", "a--1", "a-01", "a-+1", "A-1", "a-1 ", " a-1", "a-1\n", "a_b-1", "a-b-1", "é-1",
		"a-9223372036854775808", "a-99999999999999999999", strings.Repeat("z", 33) + "-1", "earliest", "a-0x1",
	} {
		if got, ok := ParseCursor(text); ok {
			t.Errorf("%q: got %+v, want it refused", text, got)
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"0", "e1-12", "a-01", "earliest", "-", "a-9223372036854775808"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, ok := ParseCursor(text); ok && c.String() != text {
			t.Errorf("got %q for the cursor %q, want the same text", c, text)
		}
		p, err := parsePlace(text, "after")
		if err != nil && !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: got %v, want an invalid request", text, err)
		}
		if c, ok := p.in(port.Head{Epoch: "e1", Oldest: 5, Newest: 9}); err == nil && ok && (c.Epoch != "e1" || c.Position < 4 || c.Position > 9) {
			t.Errorf("%q: got the place %+v, want one in the stream", text, c)
		}
	})
}

func TestPlaceInStream(t *testing.T) {
	t.Parallel()
	full := port.Head{Epoch: "e1", Oldest: 5, Newest: 9}
	removed := port.Head{Epoch: "e1", Oldest: 10, Newest: 9}
	for name, row := range map[string]struct {
		text string
		head port.Head
		want string
		gap  bool
	}{
		"earliest":                      {"earliest", full, "e1-4", false},
		"zero":                          {"0", full, "e1-4", false},
		"latest":                        {"latest", full, "e1-9", false},
		"within":                        {"e1-7", full, "e1-7", false},
		"before the oldest":             {"e1-4", full, "e1-4", false},
		"the next is removed":           {"e1-3", full, "e1-4", true},
		"the newest":                    {"e1-9", full, "e1-9", false},
		"after the newest":              {"e1-10", full, "e1-4", true},
		"another epoch":                 {"e2-7", full, "e1-4", true},
		"earliest of an empty stream":   {"earliest", port.Head{}, "0", false},
		"latest of an empty stream":     {"latest", port.Head{}, "0", false},
		"a cursor of an empty stream":   {"e1-1", port.Head{}, "0", true},
		"earliest of a removed stream":  {"earliest", removed, "e1-9", false},
		"the newest of a removed one":   {"e1-9", removed, "e1-9", false},
		"an older one of a removed one": {"e1-8", removed, "e1-9", true},
	} {
		p, err := parsePlace(row.text, "after")
		got, ok := p.in(row.head)
		if err != nil || got.String() != row.want || ok == row.gap {
			t.Errorf("%s: got %s, gap %t, %v, want %s, gap %t", name, got, !ok, err, row.want, row.gap)
		}
	}
}
