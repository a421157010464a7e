package tasks

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// description serves the OpenAPI document. The first request converts it from
// YAML to JSON.
func description() httpkit.Handler {
	document := sync.OnceValues(func() ([]byte, error) {
		text, err := yaml.YAMLToJSON(contract.OpenAPI())
		if err != nil {
			return nil, fmt.Errorf("cannot read the OpenAPI document: %w", err)
		}
		return text, nil
	})
	return func(w http.ResponseWriter, _ *http.Request) error {
		text, err := document()
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-cache")
		return httpkit.WriteBytes(w, http.StatusOK, "application/json", text)
	}
}
