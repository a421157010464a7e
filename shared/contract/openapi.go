package contract

import (
	_ "embed"
	"slices"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the OpenAPI 3.1 document of the HTTP API as YAML. The caller
// may modify the bytes.
func OpenAPI() []byte { return slices.Clone(openAPI) }
