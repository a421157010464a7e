// Package metrics serves GET /metrics, the metrics of the deployment in Prometheus' text
// format.
package metrics

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Text returns all metrics as text.
type Text func(ctx context.Context) ([]byte, error)

// contentType is the content type of version 0.0.4 of the text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Routes returns the route of the metrics.
func Routes(text Text) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodGet, Pattern: "/metrics", Access: httpkit.ForClients, Scope: access.MetricsRead, OwnCorrelationID: true,
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			metrics, err := text(r.Context())
			if err != nil {
				return fmt.Errorf("cannot read the metrics: %w", err)
			}
			w.Header().Set("Cache-Control", "no-store")
			return httpkit.WriteBytes(w, http.StatusOK, contentType, metrics)
		},
	}}
}
