package apicheck_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// bothSpellings are the schemas with names of two contracts. Status has names of the export
// contract, which spells task_id and machineId. Problem has fields that the worker contract
// (expectedAttempt) and the data plane (policy_label) require in errors.
var bothSpellings = []string{"Status", "Problem"}

// TestObjectsHaveOneSpelling checks that no schema has names in both snake_case and camelCase.
func TestObjectsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	var document map[string]any
	if err := yaml.Unmarshal(contract.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	objects := 0
	var walk func(node any, at string, exempt bool)
	walk = func(node any, at string, exempt bool) {
		switch node := node.(type) {
		case map[string]any:
			if names, ok := node["properties"].(map[string]any); ok {
				objects++
				snake, camel := spelled(names)
				if len(snake) > 0 && len(camel) > 0 && !exempt {
					t.Errorf("%s: got the names %v beside %v, want one spelling", at, snake, camel)
				}
			}
			for name, child := range node {
				walk(child, at+"/"+name, exempt || at == "/components/schemas" && slices.Contains(bothSpellings, name))
			}
		case []any:
			for _, child := range node {
				walk(child, at, exempt)
			}
		}
	}
	walk(document, "", false)
	if objects < 100 {
		t.Errorf("got %d objects, want those of the document", objects)
	}
}

var (
	snakeCase = regexp.MustCompile(`[a-z0-9]_[a-z0-9]`)
	camelCase = regexp.MustCompile(`[a-z0-9][A-Z]`)
)

func spelled(names map[string]any) (snake, camel []string) {
	for name := range names {
		if snakeCase.MatchString(name) {
			snake = append(snake, name)
		}
		if camelCase.MatchString(name) {
			camel = append(camel, name)
		}
	}
	return snake, camel
}
