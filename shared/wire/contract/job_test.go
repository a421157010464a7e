package contract_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestSamplesMatchTheJobSchema(t *testing.T) {
	t.Parallel()
	schema := jobSchema(t)
	for _, name := range []string{"nightly-report.yaml", "nightly-export.yaml", "every-field.yaml"} {
		document, err := os.ReadFile("../../domain/job/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{`{}`, `{"export":{"format":"mods"}}`, `{"export":{"format":"pdf","pi":"01K9XVBAQZF9EHDRXGBEADTZYY"}}`, `{"image":"a","x":1}`, `{"image":"a","id":"A"}`, `{"image":"a","env":{"K":1}}`, `{"image":"a","jitter":"5 s"}`, `{"image":"a","labels":{"a b":""}}`, `{"image":"a","labels":{"a":"b c"}}`} {
		if err := schema.Validate(value(t, []byte(text))); err == nil {
			t.Errorf("%s matches the schema, want an error", text)
		}
	}
}

func value(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func jobSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	var document map[string]any
	if err := json.Unmarshal(contract.JobSchema(), &document); err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("job.json", value(t, contract.JobSchema())); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("job.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestJobsSayWhatStartsThem(t *testing.T) {
	t.Parallel()
	for want, j := range map[string]contract.JobSummary{
		"@daily":                     {Schedule: "@daily", Sensor: true},
		"@daily; @weekly Asia/Tokyo": {Schedules: []string{"@daily", "@weekly"}, TimeZone: "Asia/Tokyo"},
		"after extract, prices":      {After: []string{"extract", "prices"}},
		"on events":                  {Sensor: true},
		"":                           {TimeZone: "UTC"},
	} {
		if got := j.Starts(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
