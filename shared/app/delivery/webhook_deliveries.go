package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// maxRedelivery is the number of positions in one redelivery.
const maxRedelivery = 100_000

// testEvent returns an event for Test. Its idempotency key is unique.
func (s *Webhooks) testEvent(ctx context.Context, w webhook.Webhook, by run.Actor) events.Envelope {
	id := s.newULID()
	return events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(id), EventType: eventtype.WebhookTest, OccurredAt: s.now().UTC(),
		IdempotencyKey: events.ResourceKey(eventtype.WebhookTest, "webhook/"+w.ID+"/"+id, w.Version), CorrelationID: change.CorrelationID(ctx), TenantID: w.Tenant,
		Actor: events.ActorOf(by.Name(), by.Scopes), Policy: &events.Policy{Resource: "webhook", ID: w.ID, Version: w.Version, Reason: "test"},
		Notifier: &events.Notifier{Channel: eventtype.OfPolicy.Channel()},
	}
}

// Test sends an event of the type webhook.test, which is in no stream, and returns the result.
// It is neither retried nor logged, and does not count as a delivery. Fault: NotFound.
func (s *Webhooks) Test(ctx context.Context, who port.Identity, id string) (webhook.Attempt, error) {
	v, err := s.Webhook(ctx, who, id)
	if err != nil {
		return webhook.Attempt{}, err
	}
	e := s.testEvent(ctx, v.Webhook, who.Actor())
	body, err := bodyOf(e, nil)
	if err != nil {
		return webhook.Attempt{}, err
	}
	older, newer, err := signingKeys(v.Webhook, s.now())
	if err != nil {
		return webhook.Attempt{}, fmt.Errorf("cannot sign the event: %w", err)
	}
	reply, err := s.sender.Send(ctx, hook.Message{URL: v.URL, Body: body, Key: older, Newer: newer, ID: e.EventID, Timeout: webhook.AttemptTime})
	if err != nil {
		return webhook.Attempt{}, fault.Wrap(err, fault.Unavailable, "the test was interrupted")
	}
	return attemptOf(reply, s.now()), nil
}

// Deliveries returns a page of the log of a webhook, newest events first: those with a position
// below before. An empty state selects all states. Due is the time of the next attempt; it is
// zero if the webhook is paused or disabled. Fault: NotFound.
func (s *Webhooks) Deliveries(ctx context.Context, who port.Identity, id string, state webhook.State, before int64, most int) ([]webhook.Delivery, error) {
	v, err := s.Webhook(ctx, who, id)
	if err != nil {
		return nil, err
	}
	found, err := s.store.Deliveries(ctx, v.Ref(), state, before, most)
	if err != nil {
		return nil, fmt.Errorf("cannot read the deliveries: %w", err)
	}
	now := s.now()
	for i, d := range found {
		if found[i].Due = v.Progress.NextAttempt(d, now); !v.Live() {
			found[i].Due = time.Time{}
		}
	}
	return found, nil
}

// Redeliver sends the events of the webhook in a range of positions again, delivered ones
// included. A paused or disabled webhook gets them when it is enabled. If the range is being
// redelivered, Redeliver returns that redelivery. Faults: NotFound, InvalidRequest with the
// field, Unprocessable for a range without events of the webhook, and for too many ranges.
func (s *Webhooks) Redeliver(ctx context.Context, who port.Identity, id string, r webhook.Range) (webhook.Replay, error) {
	v, err := s.Webhook(ctx, who, id)
	if err != nil {
		return webhook.Replay{}, err
	}
	head, err := s.feed.Head(ctx, port.EventStream(who.Tenant))
	if err != nil {
		return webhook.Replay{}, fmt.Errorf("cannot read the stream of events: %w", err)
	}
	switch {
	case r.From < head.Oldest || r.From > head.Newest:
		return webhook.Replay{}, fault.Invalid("from", "position %d is not stored, want %d to %d", r.From, head.Oldest, head.Newest)
	case r.To < r.From || r.To > head.Newest:
		return webhook.Replay{}, fault.Invalid("to", "to: %d is out of range, want %d to %d", r.To, r.From, head.Newest)
	case r.To-r.From >= maxRedelivery:
		return webhook.Replay{}, fault.Invalid("to", "to: got %d positions, want at most %d", r.To-r.From+1, maxRedelivery)
	}
	total, err := s.count(ctx, v.Webhook, r)
	if err != nil {
		return webhook.Replay{}, err
	}
	if total == 0 {
		return webhook.Replay{}, fault.New(fault.Unprocessable, "no event from %d to %d is one of the webhook", r.From, r.To)
	}
	return s.addReplay(ctx, v, webhook.Replay{Range: r, Next: r.From, Total: total})
}

// addReplay stores a redelivery, or returns the same one that is under way. Fault:
// Unprocessable for too many ranges.
func (s *Webhooks) addReplay(ctx context.Context, v WebhookView, replay webhook.Replay) (webhook.Replay, error) {
	for range port.CommitTries {
		p, err := s.store.Progress(ctx, v.Ref())
		if errors.Is(err, port.ErrNotFound) {
			return webhook.Replay{}, noWebhook()
		}
		if err != nil {
			return webhook.Replay{}, fmt.Errorf("cannot read the progress of the webhook: %w", err)
		}
		if at := slices.IndexFunc(p.Replays, func(is webhook.Replay) bool {
			return is.Range == replay.Range && is.Failed == replay.Failed && is.ID == ""
		}); at >= 0 {
			return p.Replays[at], nil
		}
		if len(p.Replays) >= webhook.MaxReplays {
			return webhook.Replay{}, tooManyReplays(len(p.Replays))
		}
		p.Replays, p.WakeAt = append(slices.Clone(p.Replays), replay), s.now()
		err = s.store.SaveDeliveries(ctx, p)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return webhook.Replay{}, fmt.Errorf("cannot store the redelivery: %w", err)
		}
		s.wake(ctx, v.Ref(), 0)
		return replay, nil
	}
	return webhook.Replay{}, fault.New(fault.Unavailable, "too many concurrent changes of the webhook; retry")
}

func tooManyReplays(n int) error {
	return fault.New(fault.Unprocessable, "%d redeliveries of the webhook have not ended; want fewer", n)
}

// count returns the number of events of a webhook in a range.
func (s *Webhooks) count(ctx context.Context, w webhook.Webhook, r webhook.Range) (total int, err error) {
	err = s.each(ctx, w, r, func(int64) error {
		total++
		return nil
	})
	return total, err
}

// each calls do for the positions in a range that have an event of the webhook.
func (s *Webhooks) each(ctx context.Context, w webhook.Webhook, r webhook.Range, do func(position int64) error) error {
	for after := r.From - 1; after < r.To; {
		records, err := s.feed.Read(ctx, port.EventStream(w.Tenant), after, deliverPage)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, record := range records {
			if after = record.Position; after > r.To {
				break
			}
			if e, err := readEvent(record); err != nil || !w.Filter.Matches(e.Envelope) {
				continue
			}
			if err := do(after); err != nil {
				return err
			}
		}
	}
	return nil
}
