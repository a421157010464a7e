package events_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events/eventtype"
)

// TestCatalogueIsUpToDate compares the list in the README with the types.
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
	var list strings.Builder
	for _, subject := range []eventtype.Subject{eventtype.OfRun, eventtype.OfSchedule, eventtype.OfPolicy, eventtype.OfStream} {
		fmt.Fprintf(&list, "About a %s:\n\n", subject)
		for _, info := range eventtype.All() {
			once := ""
			if info.Once && subject == eventtype.OfRun {
				once = " (once)"
			}
			if info.Subject == subject {
				fmt.Fprintf(&list, "- `%s`%s: %s\n", info.Type, once, info.When)
			}
		}
		list.WriteString("\n")
	}
	golden(t, path, []byte(before+begin+list.String()+end+after))
}
