package fake

import (
	"context"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// MaxSigned is the maximum size in bytes of a signed event that a Publisher accepts.
const MaxSigned = 256 << 10

// Publisher stores the published events. It calls its Plan for each event, with the ID of the
// event as the subject. It is safe for concurrent use.
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
		failure := p.call(ctx, "Publish", e.ID, true, func() error {
			if _, err := e.Encode(); err != nil {
				return err
			}
			if len(e.Data) > MaxSigned {
				return fault.New(fault.InvalidRequest, "event %s: got %d bytes, want at most %d", e.ID, len(e.Data), MaxSigned)
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

// Events returns the published events in order.
func (p *Publisher) Events() []port.PublishedEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}
