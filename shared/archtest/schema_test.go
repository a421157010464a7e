package archtest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestJobSchemaIsFresh checks that job.schema.json matches the schemas of openapi.yaml. With
// -rewrite it generates the file from them.
func TestJobSchemaIsFresh(t *testing.T) {
	t.Parallel()
	path := filepath.Join(root(t), "shared", "wire", "contract", "job.schema.json")
	openAPI, err := os.ReadFile(filepath.Join(root(t), "shared", "wire", "contract", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSON(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	const root, prefix = "JobDefinition", "#/components/schemas/"
	definitions := map[string]json.RawMessage{}
	for open := []string{root}; len(open) > 0; open = open[1:] {
		schema := document.Components.Schemas[open[0]]
		if _, known := definitions[open[0]]; known {
			continue
		}
		definitions[open[0]] = json.RawMessage(strings.ReplaceAll(string(schema), prefix, "#/$defs/"))
		for _, part := range strings.Split(string(schema), prefix)[1:] {
			open = append(open, part[:strings.IndexByte(part, '"')])
		}
	}
	var schema map[string]any
	if err := json.Unmarshal(definitions[root], &schema); err != nil {
		t.Fatal(err)
	}
	delete(definitions, root)
	schema["$schema"], schema["$id"], schema["title"], schema["$defs"] = "https://json-schema.org/draft/2020-12/schema", "/schemas/job.json", "Job", definitions
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(schema); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil { //nolint:gosec // a public document
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is old (%v); write it with: make generate", path, err)
	}
}
