package stack_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/sortie-dev/sortie/infra/stack"
)

// TestDocumentedStagesAreValid reads the settings of stages in README.md.
func TestDocumentedStagesAreValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```json\n(.*?)\n```\n").FindAllSubmatch(text, -1)
	if len(blocks) < 2 {
		t.Fatalf("got %d blocks, want the examples of stages", len(blocks))
	}
	for _, block := range blocks {
		var stages map[string]map[string]any
		if err := json.Unmarshal(block[1], &stages); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
		for _, stage := range slices.Collect(maps.Keys(stages)) {
			if _, err := stack.StageSettings(stage, stages[stage]); err != nil {
				t.Errorf("%v in\n%s", err, block[1])
			}
		}
	}
}
