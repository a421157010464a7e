//go:build unix

package wrap

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestParseNote(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		percent float64
		message string
	}{
		"45 message": {45, "message"}, "45% two words \n": {45, "two words"}, "0": {0, ""}, "100.0": {100, ""},
		`{"progressPct":7,"message":"m","unknown":1}`: {7, "m"},
	} {
		n, ok := parseNote(line)
		if !ok || n.ProgressPct == nil || *n.ProgressPct != want.percent || n.Message == nil || *n.Message != want.message {
			t.Errorf("%q: got %+v, %t, want %+v", line, n, ok, want)
		}
	}
	for _, line := range []string{"", "working", "NaN x", "{", `{"progressPct":"7"}`, "4 5"[:0]} {
		if n, ok := parseNote(line); ok {
			t.Errorf("%q: got %+v, want no note", line, n)
		}
	}
}

func FuzzParseNote(f *testing.F) {
	for _, seed := range []string{"45 message", "45%", `{"progressPct":7,"metrics":{"a":1}}`, `{"error":{"category":"X"}}`, "-1 x", "1e400", `{"metrics":[1]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		n, ok := parseNote(line)
		if !ok && (n.ProgressPct != nil || n.Message != nil) {
			t.Errorf("%q: got false with %+v, want the zero note", line, n)
		}
		if n.ProgressPct != nil && *n.ProgressPct != *n.ProgressPct {
			t.Errorf("%q: got NaN, want a number", line)
		}
		if n.Metrics != nil && n.Metrics[0] != '{' {
			t.Errorf("%q: got metrics %s, want an object", line, n.Metrics)
		}
	})
}

func TestLongProgressLineIsSkipped(t *testing.T) {
	t.Parallel()
	var got []string
	readNotes(strings.NewReader("1 a\n2 "+strings.Repeat("x", 3*maxLine)+"\n3 b\n4 c"), func(n note) { got = append(got, *n.Message) })
	if strings.Join(got, " ") != "a b c" {
		t.Errorf("got messages %q, want a, b, c", got)
	}
}

func TestCaptureKeepsBothEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 60).Draw(t, "limit")
		pieces := rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,40}`), 0, 8).Draw(t, "pieces")
		c, all := newCapture(limit), strings.Join(pieces, "")
		for _, p := range pieces {
			if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		got := c.String()
		if len(all) <= limit {
			if got != all {
				t.Fatalf("got %q, want %q", got, all)
			}
			return
		}
		head, tail := all[:limit/4], all[len(all)-(limit-limit/4):]
		if !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) || !strings.Contains(got, "bytes are cut out here") {
			t.Fatalf("got %q, want %q and %q with a mark between them", got, head, tail)
		}
	})
}

func TestExitCodeTable(t *testing.T) {
	t.Parallel()
	r := rules{}
	for code, want := range map[int]string{
		1: contract.CategoryUserCode, 64: contract.CategoryConfiguration, 65: contract.CategoryDataQuality, 66: contract.CategoryDataQuality,
		67: contract.CategoryUserCode, 69: contract.CategoryInfrastructure, 70: contract.CategoryUserCode, 71: contract.CategoryInfrastructure,
		76: contract.CategoryInfrastructure, 77: contract.CategoryConfiguration, 78: contract.CategoryConfiguration,
		124: contract.CategoryTimeout, 126: contract.CategoryConfiguration, 127: contract.CategoryConfiguration,
		129: contract.CategoryInfrastructure, 130: contract.CategoryInfrastructure, 134: contract.CategoryUserCode,
		137: contract.CategoryInfrastructure, 143: contract.CategoryInfrastructure, 152: contract.CategoryTimeout, 255: contract.CategoryUserCode,
	} {
		if got := r.categoryOf(end{code: code}); got != want {
			t.Errorf("exit code %d: got %s, want %s", code, got, want)
		}
	}
}
