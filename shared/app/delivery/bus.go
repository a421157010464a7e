package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Bus publishes the streams of events to a bus. Delivery is at least once.
type Bus struct {
	feed      port.Feed
	publisher port.Publisher
	keys      port.EventKeys
	log       *slog.Logger
	turns     TurnTaking
}

// NewBus returns a Bus that publishes the events of feed with publisher. keys sign the events of
// replays, and those that are stored without a signature. With turns, one process at a time
// publishes the events of a tenant.
func NewBus(feed port.Feed, publisher port.Publisher, keys port.EventKeys, turns TurnTaking, log *slog.Logger) *Bus {
	return &Bus{feed, publisher, keys, log, turns}
}

const (
	// busConsumer is the prefix of the bus's consumer name in a stream. The epoch of the stream
	// follows.
	busConsumer = "bus/"
	busPage     = 100
	// busPages is the number of pages after which another process may continue.
	busPages = 5
)

// PublishAll publishes the events of tenants. It returns the number of tenants with events that
// the bus did not receive. A sweep publishes those.
func (s *Bus) PublishAll(ctx context.Context, tenants []string) (failed int) {
	return eachTenant(tenants, func(tenant string) error { return s.Publish(ctx, tenant) }, func(tenant string, err error) {
		s.log.WarnContext(ctx, "the bus did not get all events; a sweep publishes the rest", "tenant", tenant, "error", err.Error())
	})
}

// Position returns the position of the bus's cursor in the events of a tenant.
func (s *Bus) Position(ctx context.Context, tenant string) (int64, error) {
	_, at, err := s.place(ctx, port.EventStream(tenant))
	return at, err
}

// Publish publishes the events of a tenant behind the bus's cursor. It returns nil if another
// call publishes them at the same time. An event that the bus rejects permanently stays in the
// stream and does not block the others.
func (s *Bus) Publish(ctx context.Context, tenant string) error {
	stream := port.EventStream(tenant)
	return s.turns.read(ctx, stream, busConsumer, reader{
		some: func() (bool, error) { return s.publishSome(ctx, tenant) },
		hasMore: func() (bool, error) {
			head, at, err := s.place(ctx, stream)
			return at < head.Newest, err
		},
	})
}

// place returns the head of a stream and the bus's cursor.
func (s *Bus) place(ctx context.Context, stream string) (head port.Head, at int64, err error) {
	if head, err = s.feed.Head(ctx, stream); err != nil {
		return head, 0, fmt.Errorf("cannot read the head of the stream: %w", err)
	}
	// A stream that was begun again is read from its start.
	if at, err = s.feed.Cursor(ctx, stream, busConsumer+head.Epoch); err != nil {
		return head, 0, fmt.Errorf("cannot read the cursor of the bus: %w", err)
	}
	return head, at, nil
}

// publishSome publishes at most busPages pages. It returns port.ErrConflict if another call
// publishes them.
func (s *Bus) publishSome(ctx context.Context, tenant string) (more bool, err error) {
	stream := port.EventStream(tenant)
	head, at, err := s.place(ctx, stream)
	if err != nil {
		return false, err
	}
	for page := 0; at < head.Newest; page++ {
		if page == busPages {
			return true, nil
		}
		records, err := s.feed.Read(ctx, stream, at, busPage)
		if err != nil {
			return false, fmt.Errorf("cannot read the stream: %w", err)
		}
		if len(records) == 0 {
			return false, nil
		}
		if first := records[0].Position; at > 0 && first > at+1 {
			s.log.ErrorContext(ctx, "events expired before the bus got them", "tenant", tenant, "events", first-at-1)
		}
		to, failed := s.publish(ctx, tenant, head.Epoch, records)
		if to > at {
			err := s.feed.MoveCursor(ctx, stream, busConsumer+head.Epoch, at, to)
			if errors.Is(err, port.ErrConflict) {
				return false, errors.Join(failed, err)
			}
			if err != nil {
				return false, errors.Join(failed, fmt.Errorf("cannot move the cursor of the bus: %w", err))
			}
		}
		if failed != nil {
			return false, failed
		}
		at = to
	}
	return false, nil
}

// publish publishes records. It returns the position of the last record before the first one
// that needs a retry.
func (s *Bus) publish(ctx context.Context, tenant, epoch string, records []port.FeedRecord) (to int64, err error) {
	var list []port.PublishedEvent
	for _, r := range records {
		signed, err := events.Signed(ctx, r.Data, s.keys.Signing)
		if err != nil {
			return records[0].Position - 1, err
		}
		e, _, err := events.Unverified(r.Data)
		if err != nil {
			s.log.ErrorContext(ctx, "cannot read an event of the stream; the bus does not get it",
				"tenant", tenant, "position", r.Position, "error", err.Error())
			continue
		}
		list = append(list, port.PublishedEvent{Message: events.NewMessage(e, epoch, r.Position, signed), Position: r.Position})
	}
	sent, err := s.send(ctx, tenant, list)
	if sent < len(list) {
		return list[sent].Position - 1, err
	}
	return records[len(records)-1].Position, err
}

// send publishes events. It returns the number of leading events that need no retry: the bus
// has received them, or rejects them permanently.
func (s *Bus) send(ctx context.Context, tenant string, list []port.PublishedEvent) (done int, err error) {
	if len(list) == 0 {
		return 0, nil
	}
	failed, err := s.publisher.Publish(ctx, list)
	for _, n := range failed {
		s.log.WarnContext(ctx, "the bus did not take an event", "tenant", tenant, "position", list[n].Position, "event", list[n].ID,
			"type", list[n].Type, "task_id", list[n].TaskID, "run_id", list[n].RunID, "correlation_id", list[n].CorrelationID)
	}
	if err != nil && len(failed) > 0 && fault.Is(err, fault.Unavailable) {
		return failed[0], fmt.Errorf("cannot publish %d events of tenant %s: %w", len(failed), tenant, err)
	}
	if err != nil {
		s.log.ErrorContext(ctx, "the bus refuses events; they stay in the stream", "tenant", tenant, "events", len(failed), "error", err.Error())
	}
	return len(list), nil
}

// Work returns Publish and Position as the work of a StreamSweep.
func (s *Bus) Work() StreamWork { return StreamWork{s.Publish, s.Position} }
