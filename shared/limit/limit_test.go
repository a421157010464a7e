package limit_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/sortie-dev/sortie/shared/limit"
)

// TestOpenAPIHasTheLimits compares the ranges that clients read.
func TestOpenAPIHasTheLimits(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../contract/openapi.yaml")
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
