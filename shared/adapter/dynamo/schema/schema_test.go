package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

func TestKeyAttributesAreDefinedOnce(t *testing.T) {
	t.Parallel()
	types := map[string]string{}
	for _, key := range schema.Attributes() {
		if types[key.Name] != "" {
			t.Errorf("got two definitions of %s", key.Name)
		}
		types[key.Name] = key.Type
	}
	used := map[string]bool{schema.Partition.Name: true, schema.Sort.Name: true}
	for _, index := range schema.Indexes() {
		for _, key := range []schema.Key{index.Partition, index.Sort} {
			used[key.Name] = true
			if types[key.Name] != key.Type {
				t.Errorf("index %s: got %s of type %s, defined as %q", index.Name, key.Name, key.Type, types[key.Name])
			}
		}
	}
	if len(used) != len(types) {
		t.Errorf("got %d attributes and %d keys, want the same: DynamoDB refuses such a table", len(types), len(used))
	}
}

func TestStreamFilterIsJSON(t *testing.T) {
	t.Parallel()
	if !json.Valid([]byte(schema.StreamFilter)) {
		t.Error(schema.StreamFilter)
	}
}
