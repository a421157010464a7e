package events_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events/eventtype"
)

// TestCatalogueIsUpToDate compares the table of the README with the list of types.
func TestCatalogueIsUpToDate(t *testing.T) {
	t.Parallel()
	const path, begin, end = "README.md", "<!-- catalogue -->\n", "<!-- end of the catalogue -->"
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(document), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("got no catalogue in %s, want one between its marks", path)
	}
	var table strings.Builder
	table.WriteString("| type | about | when | in an attempt |\n|---|---|---|---|\n")
	for _, info := range eventtype.All() {
		often := "often"
		if info.Once {
			often = "once"
		}
		if info.Subject != eventtype.OfRun {
			often = ""
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", info.Type, info.Subject, info.When, often)
	}
	golden(t, path, []byte(before+begin+table.String()+end+after))
}
