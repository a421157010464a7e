package contract

import (
	_ "embed"
	"slices"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI gives the document that describes the whole HTTP API, OpenAPI 3.1 as
// YAML. The bytes are the caller's own.
func OpenAPI() []byte { return slices.Clone(openAPI) }
