package cost_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/cost"
)

var rewrite = flag.Bool("rewrite", false, "write what is generated anew")

const (
	// kept is what was measured last, readme what tells it.
	kept, readme = "testdata/measured.json", "../../../README.md"

	end = "<!-- end -->"
)

// TestTheReadmeIsFresh: write it anew with
// go test ./local/proof/cost -run Fresh -rewrite.
func TestTheReadmeIsFresh(t *testing.T) {
	t.Parallel()
	measured, err := cost.Read(kept)
	if err != nil {
		t.Fatal(err)
	}
	tell(t, measured)
}

// tell holds the README's sections to what was measured, or writes them.
func tell(t *testing.T, measured cost.Measured) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	fresh := string(text)
	for name, section := range map[string]string{"cost": measured.Report(), "load": measured.Load()} {
		begin := "<!-- generated: " + name + " -->\n"
		head, rest, found := strings.Cut(fresh, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("the README has no section %q", name)
		}
		fresh = head + begin + section + end + tail
	}
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
