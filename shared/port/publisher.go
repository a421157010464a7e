package port

import (
	"context"
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/run"
)

// Publisher tells others what happened to runs.
//
// Each event may be told more than once, and whoever hears it knows it again by
// its id. Who is told may hear events in another order than they were given in;
// Seq has a run's order. An event that was told is durable at the other side.
// Calls may be made from anywhere at once. Callers publish again what failed;
// the adapter repeats only what its SDK repeats by itself.
type Publisher interface {
	// Publish tells the events, as many as a caller has. It gives the indexes
	// of those that were not told, in ascending order, and why: err is nil if
	// and only if there are none. One that can never be told, for its size or
	// for what it holds, keeps no other from being told.
	Publish(ctx context.Context, events []PublishedEvent) (failed []int, err error)
}

// PublishedEvent is an event as it leaves Sortie, with whose it is.
type PublishedEvent struct {
	Tenant        string
	TaskID, RunID string
	CorrelationID string
	// Event has id, type, time, state, attempt and number.
	Event run.Event
	// Detail is what subscribers get: a JSON object.
	Detail json.RawMessage
}
