package limit_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

func TestCutMarksTheCutAtACharacter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":             {"abc", 20, "abc"},
		"exact":             {strings.Repeat("a", 20), 20, strings.Repeat("a", 20)},
		"long":              {strings.Repeat("a", 21), 20, strings.Repeat("a", 10) + " … (cut)"},
		"inside a rune":     {strings.Repeat("é", 20), 21, strings.Repeat("é", 5) + " … (cut)"},
		"not UTF-8":         {"a\xffb", 20, "a\uFFFDb"},
		"empty and no text": {"", 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := limit.Cut(test.text, test.limit)
			if got != test.want || len(got) > test.limit || !utf8.ValidString(got) {
				t.Errorf("got %q (%d bytes), want %q", got, len(got), test.want)
			}
		})
	}
}

func TestKeysOfATaskHaveItsPrefix(t *testing.T) {
	t.Parallel()
	for _, key := range []string{limit.AttemptOutput("t1", 2), limit.AttemptLog("t1", 2)} {
		if !strings.HasPrefix(key, "exports/t1/attempt-2/") {
			t.Errorf("got key %q, want it under exports/t1/attempt-2/", key)
		}
	}
	if got, want := limit.LogKey("acme", "t1", 3), "acme/logs/t1/3.log"; got != want {
		t.Errorf("got key %q, want %q", got, want)
	}
}

func TestFormsOfIDs(t *testing.T) {
	t.Parallel()
	const pi = "01K9XVBAQZF9EHDRXGBEADTZYY"
	for text, want := range map[string]bool{
		pi: true, "7" + pi[1:]: true, "8" + pi[1:]: false, strings.ToLower(pi): false, pi + "0": false, pi[1:]: false, "": false,
	} {
		if got := limit.ValidPI(text); got != want {
			t.Errorf("ValidPI(%q): got %t, want %t", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		"batch-1": true, strings.Repeat("a", limit.BatchID): true, strings.Repeat("a", limit.BatchID+1): false, "": false, "a b": false,
	} {
		if got := limit.ValidBatchID(text); got != want {
			t.Errorf("ValidBatchID(%q): got %t, want %t", text, got, want)
		}
	}
	for text, want := range map[string]bool{"out.xml": true, "a\nb": false, "a\x7fb": false, "\xff": false} {
		if got := limit.Printable(text); got != want {
			t.Errorf("Printable(%q): got %t, want %t", text, got, want)
		}
	}
}

// TestOpenAPIHasTheLimits compares the limits with the ranges in openapi.yaml.
func TestOpenAPIHasTheLimits(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../wire/contract/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"maxDepth": limit.ExportDepth, "parallelBatchSize": limit.ExportBatch} {
		found := regexp.MustCompile(name + `: \{type: integer,[^}]* maximum: (\d+)`).FindSubmatch(document)
		if found == nil {
			t.Errorf("%s: got no maximum in openapi.yaml, want %d", name, want)
			continue
		}
		if got, err := strconv.Atoi(string(found[1])); err != nil || got != want {
			t.Errorf("%s: got maximum %d, %v, want %d", name, got, err, want)
		}
	}
}

// TestOpenAPIHasTheFormats compares the formats with the enum in openapi.yaml.
func TestOpenAPIHasTheFormats(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../wire/contract/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(limit.Formats(), ", ")
	found := regexp.MustCompile(`ExportFormat: .* enum: \[([^]]*)\]`).FindSubmatch(document)
	if found == nil || string(found[1]) != want {
		t.Errorf("got formats %q in openapi.yaml, want %q", found, want)
	}
}
