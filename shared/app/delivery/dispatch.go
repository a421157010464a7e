package delivery

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// webhookConsumer is the name of the consumer that queues webhooks for the events of a stream.
const webhookConsumer = "webhooks"

// Dispatch queues the webhooks that have new events. It is safe for concurrent use, by any
// number of processes.
type Dispatch struct {
	*Subscriptions
	cache *eventCache
	turns TurnTaking
}

// NewDispatch returns a Dispatch, which shares the decoded events with the deliveries of the
// process. turns serializes it with the Dispatch of other processes.
func NewDispatch(d *Deliverer, turns TurnTaking) *Dispatch {
	return &Dispatch{d.Subscriptions, d.cache, turns}
}

// Position returns the position up to which Dispatch has handled a tenant's events.
func (s *Dispatch) Position(ctx context.Context, tenant string) (int64, error) {
	return s.feed.Cursor(ctx, port.EventStream(tenant), webhookConsumer)
}

// Dispatch queues each webhook of a tenant for which the stream has a new event. It moves its
// cursor after the webhooks are queued, so after a crash they are queued again.
func (s *Dispatch) Dispatch(ctx context.Context, tenant string) error {
	stream := port.EventStream(tenant)
	return s.turns.read(ctx, stream, webhookConsumer, reader{
		some: func() (bool, error) { return s.dispatchSome(ctx, tenant) },
		hasMore: func() (bool, error) {
			_, records, err := s.next(ctx, stream, 1)
			return len(records) > 0, err
		},
	})
}

// next returns the cursor of Dispatch and at most limit records behind it.
func (s *Dispatch) next(ctx context.Context, stream string, limit int) (cursor int64, records []port.FeedRecord, err error) {
	if cursor, err = s.feed.Cursor(ctx, stream, webhookConsumer); err != nil {
		return 0, nil, fmt.Errorf("cannot read the cursor of the webhooks: %w", err)
	}
	records, err = s.feed.Read(ctx, stream, cursor, limit)
	return cursor, records, err
}

// dispatchPages is the number of pages after which another process may continue.
const dispatchPages = 5

// dispatchSome dispatches at most dispatchPages pages of events. more reports that further ones
// may follow.
func (s *Dispatch) dispatchSome(ctx context.Context, tenant string) (more bool, err error) {
	for range dispatchPages {
		if more, err = s.dispatchPage(ctx, tenant); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// dispatchPage dispatches a page of events. It returns port.ErrConflict if another call has
// queued the webhooks.
func (s *Dispatch) dispatchPage(ctx context.Context, tenant string) (more bool, err error) {
	stream := port.EventStream(tenant)
	cursor, records, err := s.next(ctx, stream, deliverPage)
	if err != nil || len(records) == 0 {
		return false, err
	}
	live, err := s.known.liveOf(ctx, tenant)
	if err != nil {
		return false, err
	}
	var wakes []port.Wake
	for _, w := range live {
		if s.concerns(w, records) {
			wakes = append(wakes, port.Wake{Tenant: w.Tenant, Webhook: w.ID})
		}
	}
	if len(wakes) > 0 {
		if err := s.wakes.Wake(ctx, wakes...); err != nil {
			return false, fmt.Errorf("cannot queue webhooks: %w", err)
		}
	}
	if err := s.feed.MoveCursor(ctx, stream, webhookConsumer, cursor, records[len(records)-1].Position); err != nil {
		return false, fmt.Errorf("cannot move the cursor of the webhooks: %w", err)
	}
	return true, nil
}

// Tenants returns the tenants with a stream of events.
func (s *Dispatch) Tenants(ctx context.Context) (tenants []string, err error) {
	for after := ""; ; {
		streams, next, err := s.feed.Streams(ctx, port.EventStreams, after, streamPage)
		if err != nil {
			return tenants, fmt.Errorf("cannot list the streams: %w", err)
		}
		for _, stream := range streams {
			tenants = append(tenants, strings.TrimPrefix(stream, port.EventStreams))
		}
		if after = next; next == "" {
			return tenants, nil
		}
	}
}

// DispatchTenants calls Dispatch for each tenant with a live webhook. The cursors of the others
// are moved by a sweep only: that is one write a minute instead of one for each batch of
// events. It returns the number of tenants that failed; a sweep retries them.
func (s *Dispatch) DispatchTenants(ctx context.Context, tenants []string) (failed int) {
	return eachTenant(tenants, func(tenant string) error {
		live, err := s.known.liveOf(ctx, tenant)
		if err != nil || len(live) == 0 {
			return err
		}
		return s.Dispatch(ctx, tenant)
	}, func(tenant string, err error) {
		s.log.WarnContext(ctx, "cannot queue the webhooks of new events; a sweep does", "tenant", tenant, "error", err.Error())
	})
}

// Work returns Dispatch and Position as the work of a StreamSweep. The sweep dispatches the
// events of a relay that ended before it called Dispatch.
func (s *Dispatch) Work() StreamWork { return StreamWork{s.Dispatch, s.Position} }

// duePage is the number of due webhooks, or of expired deliveries, in one call of the store.
const duePage = 100

// Sweep calls WakeDue for the current time.
func (s *Dispatch) Sweep(ctx context.Context) error { return s.WakeDue(ctx, 0) }

// WakeDue queues the webhooks that are due within ahead, and deletes expired deliveries from
// the log. A sweep calls it.
func (s *Dispatch) WakeDue(ctx context.Context, ahead time.Duration) error {
	now := s.now()
	for after := ""; ; {
		due, next, err := s.store.WebhooksDue(ctx, now.Add(ahead), after, duePage)
		if err != nil {
			return fmt.Errorf("cannot find the due webhooks: %w", err)
		}
		wakes := make([]port.Wake, len(due))
		for i, ref := range due {
			wakes[i] = port.Wake{Tenant: ref.Tenant, Webhook: ref.ID}
		}
		if len(wakes) > 0 {
			if err := s.wakes.Wake(ctx, wakes...); err != nil {
				return fmt.Errorf("cannot queue webhooks: %w", err)
			}
		}
		if after = next; next == "" {
			break
		}
	}
	if _, err := s.store.PurgeDeliveries(ctx, now, duePage); err != nil {
		return fmt.Errorf("cannot purge the log of deliveries: %w", err)
	}
	return nil
}

func (s *Dispatch) concerns(w webhook.Webhook, records []port.FeedRecord) bool {
	for _, r := range records {
		// An unreadable event is for no webhook; a delivery logs it.
		if e, err := s.cache.get(w.Tenant, r); err == nil && w.Filter.Matches(e.Envelope) {
			return true
		}
	}
	return false
}

// liveFor is the time for which a process caches the live webhooks, and so misses a new one of
// another process. It is less than newWebhookDelay, after which each new webhook is queued.
const (
	liveFor         = time.Second
	newWebhookDelay = 3 * time.Second
)

// liveWebhooks caches the live webhooks of tenants for liveFor. It is safe for concurrent use.
type liveWebhooks struct {
	store port.WebhookStore
	clock clock.Clock

	mu      sync.Mutex
	tenants map[string]liveTenant
}

type liveTenant struct {
	at   time.Time
	live []webhook.Webhook
}

// forget removes a tenant from the cache, so that the next call of liveOf reads its webhooks.
func (l *liveWebhooks) forget(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tenants, tenant)
}

func (l *liveWebhooks) liveOf(ctx context.Context, tenant string) ([]webhook.Webhook, error) {
	now := l.clock.Now()
	l.mu.Lock()
	known, ok := l.tenants[tenant]
	l.mu.Unlock()
	if ok && now.Sub(known.at) < liveFor {
		return known.live, nil
	}
	var live []webhook.Webhook
	err := eachWebhook(ctx, l.store, tenant, func(w webhook.Webhook) error {
		if w.Live() {
			live = append(live, w)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tenants[tenant] = liveTenant{now, live}
	return live, nil
}

// eachWebhook calls the function for each webhook of a tenant until it fails.
func eachWebhook(ctx context.Context, store port.WebhookStore, tenant string, do func(webhook.Webhook) error) error {
	for page := (port.Page{Limit: 1000}); ; {
		found, next, err := store.Webhooks(ctx, tenant, page)
		if err != nil {
			return fmt.Errorf("cannot list the webhooks: %w", err)
		}
		for _, w := range found {
			if err := do(w); err != nil {
				return err
			}
		}
		if page.Cursor = next; next == "" {
			return nil
		}
	}
}
