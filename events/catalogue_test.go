package events_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events/eventtype"
)

// TestTypesOfTheSchemaAreFresh compares the first four enums of the schema with the types: of
// all events, and of those about a run, a schedule and a policy.
func TestTypesOfTheSchemaAreFresh(t *testing.T) {
	t.Parallel()
	const path = "schema/orch.event.v1.json"
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	subjects := []eventtype.Subject{"", eventtype.OfRun, eventtype.OfSchedule, eventtype.OfPolicy}
	fresh := regexp.MustCompile(`"enum": \[\n( +)[^\]]*"\n`).ReplaceAllStringFunc(string(document), func(old string) string {
		if len(subjects) == 0 {
			return old
		}
		var lines []string
		for _, info := range eventtype.All() {
			if subjects[0] == "" || subjects[0] == info.Subject {
				indent := old[len("\"enum\": [\n") : strings.IndexByte(old[10:], '"')+10]
				lines = append(lines, fmt.Sprintf("%s%q", indent, info.Type))
			}
		}
		subjects = subjects[1:]
		return "\"enum\": [\n" + strings.Join(lines, ",\n") + "\n"
	})
	golden(t, path, []byte(fresh))
}

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
