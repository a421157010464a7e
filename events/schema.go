package events

import _ "embed" // the schema

//go:embed schema/orch.event.v1.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of the envelope. Callers must not change it.
func Schema() []byte { return schema }
