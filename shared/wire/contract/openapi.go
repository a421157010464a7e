package contract

import (
	_ "embed"
	"slices"
)

//go:embed openapi.yaml
var openAPI []byte

// APIVersion is the version of Sortie: the HTTP API and its OpenAPI document, the programs,
// packages and SDKs.
const APIVersion = "0.1.0"

// OpenAPI returns the OpenAPI 3.1 document of the HTTP API as YAML. The caller may modify the
// bytes.
func OpenAPI() []byte { return slices.Clone(openAPI) }

//go:embed job.schema.json
var jobSchema []byte

// JobSchema returns the JSON Schema (2020-12) of job documents. The caller may modify
// the bytes.
func JobSchema() []byte { return slices.Clone(jobSchema) }
