package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestEachViolationHasAStory requires a story for each constraint that is evaluated before a
// run, with each action. The first evaluation of that story violates only that constraint.
func TestEachViolationHasAStory(t *testing.T) {
	t.Parallel()
	after := []spec.Constraint{spec.MaxExpectedRunTime, spec.MaxAllowedRunTime, spec.PostRunHook}
	told := map[string]bool{}
	names, err := filepath.Glob("testdata/stories/violated_*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		told[cell(string(text))] = true
	}
	for _, constraint := range spec.ConstraintNames() {
		if slices.Contains(after, constraint) {
			continue
		}
		for _, action := range spec.ViolationTypes() {
			if want := fmt.Sprintf("%s %s", constraint, action); !told[want] {
				t.Errorf("got no story of %s", want)
			}
		}
	}
}

// cell returns the constraint that the first evaluation of a story violates, and the action of
// its run.
func cell(story string) string {
	var action, constraint string
	for line := range strings.Lines(story) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "new" && words[0] != "checked" {
			continue
		}
		for _, word := range words[1:] {
			if value, ok := strings.CutPrefix(word, "action="); ok && action == "" {
				action = value
			}
			if value, ok := strings.CutPrefix(word, "violated="); ok && constraint == "" {
				constraint = value
			}
		}
	}
	return constraint + " " + action
}
