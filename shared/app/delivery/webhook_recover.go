package delivery

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// deliveriesPage is the number of deliveries in one read.
const deliveriesPage = 1000

// RedeliverFailed sends events of the stream since a time again: those whose delivery has
// failed, and those that the webhook missed while it was paused or disabled. A paused or
// disabled webhook gets them when it is enabled. Faults: NotFound, InvalidRequest with the
// field, Unprocessable if there is nothing to send, and for too many ranges.
func (s *Webhooks) RedeliverFailed(ctx context.Context, who port.Identity, id string, since time.Time) (webhook.Replay, error) {
	v, err := s.Webhook(ctx, who, id)
	if err != nil {
		return webhook.Replay{}, err
	}
	if since.After(s.now()) {
		return webhook.Replay{}, fault.Invalid(failedSince, "%s: %s is in the future, want a time in the past", failedSince, since.Format(time.RFC3339))
	}
	head, err := s.feed.Head(ctx, port.EventStream(who.Tenant))
	if err != nil {
		return webhook.Replay{}, fmt.Errorf("cannot read the stream of events: %w", err)
	}
	after, err := s.before(ctx, port.EventStream(who.Tenant), head, since)
	if err != nil {
		return webhook.Replay{}, err
	}
	replay := webhook.Replay{Range: webhook.Range{From: math.MaxInt64}, Failed: true}
	if err := s.addFailed(ctx, v, after, &replay); err != nil {
		return webhook.Replay{}, err
	}
	for _, r := range v.Progress.Missed {
		r.From, r.To = max(r.From, after+1, head.Oldest), min(r.To, head.Newest)
		if err := s.addMissed(ctx, v, r, &replay); err != nil {
			return webhook.Replay{}, err
		}
	}
	if replay.Total == 0 {
		return webhook.Replay{}, fault.New(fault.Unprocessable, "no delivery of the webhook has failed since %s", since.Format(time.RFC3339))
	}
	replay.Next = replay.From
	return s.addReplay(ctx, v, replay)
}

// failedSince is the request field of the time from which events are sent again.
const failedSince = "failedSince"

// widen extends the range of a replay. Fault: InvalidRequest if it gets too long.
func widen(replay *webhook.Replay, from, to int64) error {
	replay.From, replay.To = min(replay.From, from), max(replay.To, to)
	if replay.To-replay.From >= maxRedelivery {
		return fault.Invalid(failedSince, "%s: the events are at more than %d positions of the stream; choose a later time, or redeliver ranges", failedSince, maxRedelivery)
	}
	return nil
}

// addFailed adds the failed deliveries after a position.
func (s *Webhooks) addFailed(ctx context.Context, v WebhookView, after int64, replay *webhook.Replay) error {
	return s.eachDelivery(ctx, v, webhook.Failed, after+1, math.MaxInt64, func(position int64) error {
		replay.Total++
		return widen(replay, position, position)
	})
}

// addMissed adds the events in a range that the webhook missed and that were not redelivered
// since. The range may be empty.
func (s *Webhooks) addMissed(ctx context.Context, v WebhookView, r webhook.Range, replay *webhook.Replay) error {
	if r.From > r.To {
		return nil
	}
	if err := widen(replay, r.From, r.To); err != nil {
		return err
	}
	known := map[int64]bool{}
	err := s.eachDelivery(ctx, v, "", r.From, r.To, func(position int64) error {
		known[position] = true
		return nil
	})
	if err != nil {
		return err
	}
	err = s.each(ctx, v.Webhook, r, func(position int64) error {
		if !known[position] {
			replay.Total++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot read the missed events: %w", err)
	}
	return nil
}

// eachDelivery calls do for the deliveries from one position to another, newest first. An empty
// state selects all states.
func (s *Webhooks) eachDelivery(ctx context.Context, v WebhookView, state webhook.State, from, to int64, do func(position int64) error) error {
	before := to
	if to < math.MaxInt64 {
		before++
	}
	for {
		page, err := s.store.Deliveries(ctx, v.Ref(), state, before, deliveriesPage)
		if err != nil {
			return fmt.Errorf("cannot read the deliveries: %w", err)
		}
		for _, d := range page {
			if before = d.Position; before < from {
				return nil
			}
			if err := do(before); err != nil {
				return err
			}
		}
		if len(page) < deliveriesPage {
			return nil
		}
	}
}
