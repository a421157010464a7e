package worker

import (
	"strings"
	"testing"
)

func TestOneEntityIsOneDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.archive.add(0, pinax("A title"), 1)
	r, doc := b.mustRun()
	wantCounts(t, r, 1, 0, 0)
	if want := "exports/export_mods_1_abc/" + testPI(0) + ".xml"; r.OutputR2Key != want {
		t.Errorf("output_r2_key = %q, want %q", r.OutputR2Key, want)
	}
	if !strings.Contains(doc, "<title>A title</title>") || strings.Contains(doc, "modsCollection") {
		t.Errorf("document:\n%s", doc)
	}
}
