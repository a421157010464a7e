package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// EventLevels computes the gauges of events and webhooks, over all tenants.
type EventLevels struct {
	outbox port.Outbox
	feed   port.Feed
	store  port.WebhookStore
	clock  clock.Clock
	bus    bool
}

// NewEventLevels returns EventLevels. Without a bus, Lags has no lag of the bus.
func NewEventLevels(outbox port.Outbox, feed port.Feed, store port.WebhookStore, c clock.Clock, bus bool) *EventLevels {
	return &EventLevels{outbox, feed, store, c, bus}
}

// Lags returns, for each target, the age of the oldest event that it has not received.
func (s *EventLevels) Lags(ctx context.Context) ([]series.Sample, error) {
	var feed, bus, webhooks time.Duration
	now := s.clock.Now()
	waiting, _, err := s.outbox.Stored(ctx, "", 1)
	if err != nil {
		return nil, fmt.Errorf("cannot read the outbox: %w", err)
	}
	for _, c := range waiting {
		feed = max(now.Sub(c.At), 0)
	}
	var failed []error
	// A stream is due while a target has not received all of its events.
	err = eachDue(ctx, s.feed, port.EventStreams, now.Add(time.Minute), func(streams []string) bool {
		for _, stream := range streams {
			toBus, toWebhooks, err := s.lagsOf(ctx, stream, now)
			bus, webhooks, failed = max(bus, toBus), max(webhooks, toWebhooks), append(failed, err)
		}
		return ctx.Err() == nil
	})
	if err = errors.Join(append(failed, err, ctx.Err())...); err != nil {
		return nil, err
	}
	lag := func(to series.Target, age time.Duration) series.Sample {
		return series.Sample{Name: series.RelayLag, Value: age.Seconds(), Labels: []string{string(to)}}
	}
	lags := []series.Sample{lag(series.ToFeed, feed), lag(series.ToWebhooks, webhooks)}
	if s.bus {
		lags = append(lags, lag(series.ToBus, bus))
	}
	return lags, nil
}

// lagsOf returns the ages of the oldest events of a stream that the bus and the webhooks have
// not received.
func (s *EventLevels) lagsOf(ctx context.Context, stream string, now time.Time) (bus, webhooks time.Duration, err error) {
	head, err := s.feed.Head(ctx, stream)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the head of the stream: %w", err)
	}
	if bus, err = s.lag(ctx, stream, busConsumer+head.Epoch, head, now); err != nil {
		return 0, 0, err
	}
	late, err := s.lag(ctx, stream, webhookConsumer, head, now)
	if err != nil || late == 0 {
		return bus, 0, err
	}
	err = eachWebhook(ctx, s.store, strings.TrimPrefix(stream, port.EventStreams), func(w webhook.Webhook) error {
		if w.Live() { // without a live webhook, the events have no receiver
			webhooks = late
		}
		return nil
	})
	return bus, webhooks, err
}

// lag returns the age of the oldest event of a stream that a consumer has not handled.
func (s *EventLevels) lag(ctx context.Context, stream, consumer string, head port.Head, now time.Time) (time.Duration, error) {
	at, err := s.feed.Cursor(ctx, stream, consumer)
	if err != nil {
		return 0, fmt.Errorf("cannot read the cursor of %s: %w", consumer, err)
	}
	if at >= head.Newest {
		return 0, nil
	}
	records, err := s.feed.Read(ctx, stream, at, 1)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	return max(now.Sub(records[0].At), 0), nil
}

// Webhooks returns the number of webhooks by status and the number of pending deliveries.
func (s *EventLevels) Webhooks(ctx context.Context) ([]series.Sample, error) {
	counts, waiting := map[series.Standing]int{}, 0
	err := port.WalkStreams(ctx, s.feed, port.EventStreams, func(tenant string) error {
		return eachWebhook(ctx, s.store, tenant, func(w webhook.Webhook) error {
			p, err := s.store.Progress(ctx, w.Ref())
			if errors.Is(err, port.ErrNotFound) {
				return nil // it was deleted meanwhile
			}
			if err != nil {
				return fmt.Errorf("cannot read the progress of a webhook: %w", err)
			}
			waiting += p.Pending
			switch {
			case w.Disabled != nil:
				counts[series.StandingDisabled]++
			case w.Paused:
				counts[series.StandingPaused]++
			case p.Health.Failing():
				counts[series.StandingCircuit]++
			default:
				counts[series.StandingActive]++
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	all := []series.Sample{{Name: series.Waiting, Value: float64(waiting)}}
	for _, standing := range series.Standings() {
		all = append(all, series.Sample{Name: series.Webhooks, Value: float64(counts[standing]), Labels: []string{string(standing)}})
	}
	return all, nil
}

// Samples returns the gauges of events.
func (s *EventLevels) Samples(ctx context.Context) ([]series.Sample, error) {
	return series.AllOf(s.Lags, s.Webhooks)(ctx)
}
