package documents_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestWorkerPageNamesWhatCallsNeed checks that a worker can be written from the page about the
// protocol: it names each member of the calls that is required, or in the first example.
func TestWorkerPageNamesWhatCallsNeed(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Required []string
				Examples []any
			}
		}
	}
	if err := yaml.Unmarshal(contract.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	root, _ := repository(t)
	page, err := os.ReadFile(filepath.Join(root, "shared/sdk/go/worker/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, protocol, _ := strings.Cut(string(page), "\n## Speak the protocol\n")
	protocol, _, _ = strings.Cut(protocol, "\n## ")
	for _, call := range []string{"TaskStarted", "TaskHeartbeat", "TaskCompleted"} {
		schema := document.Components.Schemas[call]
		if len(schema.Required) == 0 || len(schema.Examples) == 0 {
			t.Fatalf("%s: got no required members or no example", call)
		}
		example, _ := schema.Examples[0].(map[string]any)
		for _, member := range slices.AppendSeq(schema.Required, maps.Keys(example)) {
			if !strings.Contains(protocol, "`"+member+"`") {
				t.Errorf("%s: the page does not name %s", call, member)
			}
		}
	}
}
