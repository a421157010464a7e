package cost_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/cost"
)

var rewrite = flag.Bool("rewrite", false, "write the generated parts of the documents")

const (
	// stored is the file with the last measurement.
	stored = "testdata/measured.json"

	end = "<!-- end -->"
)

// TestDocumentsAreFresh compares the generated tables with the last
// measurement. "make generate" writes them.
func TestDocumentsAreFresh(t *testing.T) {
	t.Parallel()
	measured, err := cost.Read(stored)
	if err != nil {
		t.Fatal(err)
	}
	refresh(t, measured)
}

// refresh compares the generated parts of the documents with the measurement, or writes them.
func refresh(t *testing.T, measured cost.Measured) {
	t.Helper()
	top, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct{ file, name, text string }{
		{"README.md", "cost", measured.Report()},
		{"CELLS.md", "cells", measured.Cells()},
		{filepath.Join(strings.TrimSpace(string(top)), "infra", "README.md"), "load", measured.Load()},
	} {
		text, err := os.ReadFile(part.file)
		if err != nil {
			t.Fatal(err)
		}
		begin := "<!-- generated: " + part.name + " -->\n"
		head, rest, found := strings.Cut(string(text), begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s: got no generated part %q", part.file, part.name)
		}
		fresh := head + begin + part.text + end + tail
		switch {
		case fresh == string(text):
		case !*rewrite:
			t.Errorf("%s: the part %q is old; write it with: make generate", part.file, part.name)
		default:
			if err := os.WriteFile(part.file, []byte(fresh), 0o644); err != nil { //nolint:gosec // a public document
				t.Fatal(err)
			}
		}
	}
}
