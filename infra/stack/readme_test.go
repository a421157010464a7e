package stack_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
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
		var document map[string]any
		if err := json.Unmarshal(block[1], &document); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
		if document["Statement"] != nil { // an IAM policy
			continue
		}
		for stage, settings := range document {
			values, _ := settings.(map[string]any)
			if _, err := stack.StageSettings(stage, values); err != nil {
				t.Errorf("%v in\n%s", err, block[1])
			}
		}
	}
}
