package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/webhook"
)

// failedPage is the number of deliveries in one read.
const failedPage = 1000

// RedeliverFailed sends the events that the stream has since a time once more whose delivery
// has failed, and those that the webhook missed while it was paused or
// disabled. A paused or disabled webhook gets them when it is enabled. Faults: NotFound, InvalidRequest with the field,
// Unprocessable if there is nothing to send, and for too many ranges.
func (s *Webhooks) RedeliverFailed(ctx context.Context, who port.Identity, id string, since time.Time) (webhook.Replay, error) {
	v, err := s.Webhook(ctx, who, id)
	if err != nil {
		return webhook.Replay{}, err
	}
	const field = "failedSince"
	if since.After(s.now()) {
		return webhook.Replay{}, fault.Invalid(field, "%s: %s is in the future, want a time in the past", field, since.Format(time.RFC3339))
	}
	head, err := s.feed.Head(ctx, StreamOf(who.Tenant))
	if err != nil {
		return webhook.Replay{}, fmt.Errorf("cannot read the stream of events: %w", err)
	}
	after, err := s.before(ctx, StreamOf(who.Tenant), head, since)
	if err != nil {
		return webhook.Replay{}, err
	}
	replay := webhook.Replay{Range: webhook.Range{From: math.MaxInt64}, Failed: true}
	add := func(position int64) {
		replay.From, replay.To = min(replay.From, position), max(replay.To, position)
		replay.Total++
	}
	if err := s.failed(ctx, v, after, add); err != nil {
		return webhook.Replay{}, err
	}
	if err := s.missed(ctx, v, after, head.Newest, add); err != nil {
		return webhook.Replay{}, err
	}
	switch {
	case replay.Total == 0:
		return webhook.Replay{}, fault.New(fault.Unprocessable, "no delivery of the webhook has failed since %s", since.Format(time.RFC3339))
	case replay.To-replay.From >= maxRedelivery:
		return webhook.Replay{}, fault.Invalid(field, "%s: the failed deliveries are at %d positions of the stream, want at most %d; choose a later time, or redeliver ranges",
			field, replay.To-replay.From+1, maxRedelivery)
	}
	replay.Next = replay.From
	return s.addReplay(ctx, v, replay)
}

// failed calls add for the failed deliveries behind a position.
func (s *Webhooks) failed(ctx context.Context, v WebhookView, after int64, add func(int64)) error {
	for before := int64(math.MaxInt64); ; {
		page, err := s.store.Deliveries(ctx, v.Ref(), webhook.Failed, before, failedPage)
		if err != nil {
			return fmt.Errorf("cannot read the deliveries: %w", err)
		}
		for _, d := range page {
			if before = d.Position; before <= after {
				return nil
			}
			add(before)
		}
		if len(page) < failedPage {
			return nil
		}
	}
}

// missed calls add for the events behind a position that the webhook missed and that were
// not redelivered since.
func (s *Webhooks) missed(ctx context.Context, v WebhookView, after, newest int64, add func(int64)) error {
	for _, r := range v.Progress.Missed {
		r.From, r.To = max(r.From, after+1), min(r.To, newest)
		if r.To-r.From >= maxRedelivery {
			add(r.From)
			add(r.To) // the range is refused
			continue
		}
		err := s.each(ctx, v.Webhook, r, func(position int64) error {
			_, err := s.store.Delivery(ctx, v.Ref(), position)
			if errors.Is(err, port.ErrNotFound) {
				add(position)
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot read the missed events: %w", err)
		}
	}
	return nil
}
