package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// SendEvents calls POST /v1/jobs/{job_id}/events: it starts a run for each CloudEvent, at most 100.
// Each event is JSON. A repeated event has its run.
func (s Jobs) SendEvents(ctx context.Context, jobID string, events []json.RawMessage, options ...Option) (*api.EventReceipts, error) {
	if events == nil {
		events = []json.RawMessage{}
	}
	content, err := json.Marshal(events)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the events: %w", err)
	}
	return sendJSON[api.EventReceipts](ctx, s.t, call{
		method: http.MethodPost, path: pathOf("/v1/jobs/{job_id}/events", jobID), content: content,
		mediaType: "application/cloudevents-batch+json", repeatable: true,
	}, options)
}
