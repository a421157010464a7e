package events

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestPlainEnvelopeIsAnEnvelope compares the fields of both types, and the documents of all
// examples.
func TestPlainEnvelopeIsAnEnvelope(t *testing.T) {
	t.Parallel()
	plain, envelope := reflect.TypeFor[plainEnvelope](), reflect.TypeFor[Envelope]()
	for i := range envelope.NumField() {
		want := envelope.Field(i)
		if want.Name == "Unknown" {
			continue
		}
		if got := plain.Field(i); got.Name != want.Name || got.Tag != want.Tag {
			t.Errorf("got field %s `%s`, want %s `%s`", got.Name, got.Tag, want.Name, want.Tag)
		}
	}
	files, err := filepath.Glob("examples/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d examples, %v", len(files), err)
	}
	type fields Envelope
	compared := 0
	for _, file := range files {
		document, err := os.ReadFile(file) //nolint:gosec // a file of the examples
		if err != nil {
			t.Fatal(err)
		}
		var e Envelope
		if json.Unmarshal(document, &e) != nil {
			continue // an invalid example
		}
		want, err := encode(fields(e), e.Unknown)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(plainOf(&e))
		if err != nil || e.plain() && string(got) != string(want) {
			t.Errorf("%s: got %s, %v, want %s", file, got, err, want)
		}
		if e.plain() {
			compared++
		}
	}
	if compared < len(files)/2 {
		t.Errorf("compared %d of %d examples", compared, len(files))
	}
}
