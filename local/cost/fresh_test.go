package cost_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/cost"
)

var rewrite = flag.Bool("rewrite", false, "write what is generated anew")

const (
	// kept is what was measured last, readme what tells it.
	kept, readme = "testdata/measured.json", "../../README.md"

	begin, end = "<!-- generated: cost -->\n", "<!-- end -->"
)

// TestTheReadmeIsFresh: write it anew with
// go test ./local/cost -run Fresh -rewrite.
func TestTheReadmeIsFresh(t *testing.T) {
	t.Parallel()
	measured, err := cost.Read(kept)
	if err != nil {
		t.Fatal(err)
	}
	tell(t, measured)
}

// tell holds the README's section to what was measured, or writes it.
func tell(t *testing.T, measured cost.Measured) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the README has no section for costs")
	}
	fresh := head + begin + measured.Report() + end + tail
	switch {
	case fresh == string(text):
	case !*rewrite:
		t.Error("the README's costs are stale; write them anew with: make generate")
	default:
		if err := os.WriteFile(readme, []byte(fresh), 0o644); err != nil { //nolint:gosec // a document that everybody may read
			t.Fatal(err)
		}
	}
}
