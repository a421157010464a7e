package port

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Publisher publishes events to a bus.
//
// Delivery is at least once. Subscribers deduplicate by the id of the event. Events may arrive
// out of order; Sequence orders the events of a tenant. A published event is durable at the
// bus. Publisher is safe for concurrent use. Callers retry failures; an adapter retries only
// what its SDK retries.
type Publisher interface {
	// Publish publishes any number of events. It returns the indexes of the events that were
	// not published, in ascending order, and the reason. err is nil if and only if all were
	// published. An event that can never be published, because of its size or content, does not
	// block the others.
	Publish(ctx context.Context, events []PublishedEvent) (failed []int, err error)
}

// PublishedEvent is an event of a stream, for a bus. Its JSON is the message for subscribers.
type PublishedEvent struct {
	events.Message
	// Position is the position of the event in the stream.
	Position int64 `json:"-"`
	// ReplayID identifies the replay that the event is a part of; empty without a replay.
	ReplayID string `json:"-"`
}

// DedupID returns an id of the message that is unique across tenants. It is the idempotency
// key, after the tenant for an event without a run, whose key other tenants may use too. The
// replay id follows, so that a bus that drops repeated messages still delivers the replay.
func (e PublishedEvent) DedupID() string {
	id := e.IdempotencyKey
	if e.TaskID == "" {
		id = e.Tenant + "/" + id
	}
	if e.ReplayID != "" {
		id += "/" + e.ReplayID
	}
	return id
}

// Encode returns the message for subscribers. It returns an InvalidRequest fault if the signed
// event is not a JSON object.
func (e PublishedEvent) Encode() ([]byte, error) {
	if signed := bytes.TrimSpace(e.Data); !json.Valid(signed) || signed[0] != '{' {
		return nil, fault.New(fault.InvalidRequest, "the signed event is not a JSON object")
	}
	return json.Marshal(e)
}
