package api

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestExamplesAreEncodedAlike checks that the types keep all that the examples of the OpenAPI
// document have.
func TestExamplesAreEncodedAlike(t *testing.T) {
	t.Parallel()
	for _, example := range examples {
		if err := json.Unmarshal([]byte(example.json), example.value); err != nil {
			t.Errorf("%s: %v", example.name, err)
			continue
		}
		text, err := json.Marshal(example.value)
		if err != nil {
			t.Errorf("%s: %v", example.name, err)
		}
		var got, want any
		if json.Unmarshal(text, &got) != nil || json.Unmarshal([]byte(example.json), &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", example.name, text, example.json)
		}
	}
	if len(examples) == 0 {
		t.Error("got no examples")
	}
}

func TestAbsentMembersAreNotSent(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(BulkRequest{Limit: new(int64(0))})
	if want := `{"filter":{},"limit":0}`; err != nil || string(text) != want {
		t.Errorf("got %s (%v), want %s", text, err, want)
	}
}

func TestUnknownMembersAndValuesAreAccepted(t *testing.T) {
	t.Parallel()
	var run Task
	if err := json.Unmarshal([]byte(`{"taskId": "x", "state": "Dreaming", "mood": {"of": ["a", "later", "server"]}}`), &run); err != nil || run.State != "Dreaming" {
		t.Errorf("got state %q (%v), want Dreaming", run.State, err)
	}
}
