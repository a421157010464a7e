package inference_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the table of features")

// TestTableOfFeaturesIsFresh compares the table in CLIENTS.md with the features of the engines, which
// TestEnginesRefuseFeaturesByName checks.
func TestTableOfFeaturesIsFresh(t *testing.T) {
	t.Parallel()
	const file, begin, end = "CLIENTS.md", "<!-- features -->\n", "<!-- /features -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q", file, begin)
	}
	if want := head + begin + table() + end + tail; want != string(text) {
		if !*rewrite {
			t.Fatalf("the table in %s is stale, run this test with -args -rewrite", file)
		}
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// table returns a row for each feature and each member of an engine, and a column for each engine.
func table() string {
	var b strings.Builder
	b.WriteString("| member |")
	for _, kind := range platform.EngineKinds() {
		fmt.Fprintf(&b, " %s |", kind)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(platform.EngineKinds())) + "\n")
	var names []string
	for _, f := range inference.EngineFeatures(platform.EngineMock) {
		names = append(names, string(f))
	}
	for _, name := range append(names, inference.Extras()...) {
		fmt.Fprintf(&b, "| `%s` |", name)
		for _, kind := range platform.EngineKinds() {
			cell := "refused"
			if contains(inference.EngineFeatures(kind), name) || slices.Contains(inference.EngineExtras(kind), name) {
				cell = "yes"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}
