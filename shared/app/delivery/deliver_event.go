package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// streamEvent is an event of a stream.
type streamEvent struct {
	events.Envelope
	position int64
	// plain is the body of a first delivery. All webhooks share it.
	plain []byte
}

// delivery returns the first delivery of the event.
func (e *streamEvent) delivery() webhook.Delivery {
	d := webhook.Delivery{Position: e.position, EventID: e.EventID, EventType: string(e.EventType), State: webhook.Pending}
	if e.Job != nil {
		d.TaskID = e.Job.ID
	}
	return d
}

// body returns the body of a delivery. replay is nil for a first delivery.
func (e *streamEvent) body(replay *events.Replay) []byte {
	if replay == nil {
		return e.plain
	}
	body, err := bodyOf(e.Envelope, replay)
	if err != nil {
		return e.plain // not reached: readEvent has encoded the event
	}
	return body
}

// bodyOf returns the body of the delivery of an event to a webhook.
func bodyOf(e events.Envelope, replay *events.Replay) ([]byte, error) {
	notifier := events.Notifier{}
	if e.Notifier != nil {
		notifier = *e.Notifier
	}
	notifier.Delivery, notifier.Replay = events.DeliveryHMAC, replay
	e.Notifier = &notifier
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the event %s: %w", e.EventID, err)
	}
	return body, nil
}

// readEvent decodes a record of a stream of events. It does not verify the signature, which
// this system made.
func readEvent(r port.FeedRecord) (e *streamEvent, err error) {
	e = &streamEvent{position: r.Position}
	if e.Envelope, _, err = events.Unverified(r.Data); err != nil {
		return nil, fmt.Errorf("record %s: %w", r.ID, err)
	}
	e.plain, err = bodyOf(e.Envelope, nil)
	return e, err
}

// eventCacheSize is the number of events in each half of an eventCache.
const eventCacheSize = 1000

// eventCache caches decoded events, so that each is decoded once for all webhooks. It is safe
// for concurrent use.
type eventCache struct {
	mu         sync.Mutex
	now, older map[eventPlace]*streamEvent
}

type eventPlace struct {
	tenant   string
	position int64
	id       string
}

func newEventCache() *eventCache { return &eventCache{now: map[eventPlace]*streamEvent{}} }

func (c *eventCache) get(tenant string, r port.FeedRecord) (*streamEvent, error) {
	at := eventPlace{tenant, r.Position, r.ID}
	c.mu.Lock()
	e, ok := c.now[at]
	if !ok {
		e, ok = c.older[at]
	}
	c.mu.Unlock()
	if ok {
		return e, nil
	}
	e, err := readEvent(r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.now) >= eventCacheSize {
		c.now, c.older = map[eventPlace]*streamEvent{}, c.now
	}
	c.now[at] = e
	return e, nil
}

// eventAt returns the event at a position, or nil if the stream no longer contains it.
func (t *deliveryPass) eventAt(ctx context.Context, position int64) (*streamEvent, error) {
	records, err := t.feed.Read(ctx, port.EventStream(t.w.Tenant), position-1, 1)
	if err != nil || len(records) == 0 || records[0].Position != position {
		return nil, err
	}
	e, err := t.cache.get(t.w.Tenant, records[0])
	if err != nil {
		return nil, nil //nolint:nilerr // what cannot be read is given up
	}
	return e, nil
}
