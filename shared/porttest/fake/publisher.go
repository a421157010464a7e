package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// MaxDetail is the size in bytes of the largest detail that a Publisher accepts.
const MaxDetail = 256 << 10

// Publisher stores what is published. Its Plan is asked for each event, with
// the event's id as the subject. It is safe for concurrent use.
type Publisher struct {
	calls
	mu     sync.Mutex
	events []port.PublishedEvent
}

var _ port.Publisher = (*Publisher)(nil)

// NewPublisher returns a Publisher without events.
func NewPublisher(plan Plan) *Publisher { return &Publisher{calls: calls{plan: plan}} }

// Publish implements port.Publisher.
func (p *Publisher) Publish(ctx context.Context, events []port.PublishedEvent) (failed []int, err error) {
	for i, e := range events {
		failure := p.call(ctx, "Publish", e.Event.ID, true, func() error {
			if detail := bytes.TrimSpace(e.Detail); !json.Valid(detail) || detail[0] != '{' || len(detail) > MaxDetail {
				return fault.New(fault.InvalidRequest, "event %s: want a JSON object of at most %d bytes", e.Event.ID, MaxDetail)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events = append(p.events, e)
			return nil
		})
		if failure != nil {
			failed, err = append(failed, i), failure
		}
	}
	return failed, err
}

// Events returns what was published, in order.
func (p *Publisher) Events() []port.PublishedEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}
