package port

import (
	"context"
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/run"
)

// Publisher publishes the events of runs.
//
// Delivery is at least once. Subscribers deduplicate by Event.ID. Events may
// arrive out of order; Seq orders the events of a run. An event that was
// published is durable at the bus. Publisher is safe for concurrent use.
// Callers retry failures; an adapter retries only what its SDK retries.
type Publisher interface {
	// Publish publishes any number of events. It returns the indexes of those
	// that were not published, in ascending order, and the reason; err is nil
	// if and only if all were published. An event that can never be published,
	// for its size or content, does not prevent the others.
	Publish(ctx context.Context, events []PublishedEvent) (failed []int, err error)
}

// PublishedEvent is an event with the run that it belongs to.
type PublishedEvent struct {
	Tenant        string
	TaskID, RunID string
	CorrelationID string
	// Event has id, type, time, state, attempt and number.
	Event run.Event
	// Detail is the content for subscribers: a JSON object.
	Detail json.RawMessage
}
