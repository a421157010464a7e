package stack

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// The limits of concurrent turns. A webhook whose last turn was slow uses other slots, so that
// hanging receivers do not delay the rest.
const (
	fastTurns = 512
	slowTurns = 256
	slowTurn  = webhook.AttemptTime / 5
)

// deliverer implements port.Wakes in process. It delivers to each queued webhook. If a webhook is queued again during the call, it calls deliver once more.
type deliverer struct {
	clock      clock.Clock
	log        *slog.Logger
	fast, slow chan struct{}

	mu      sync.Mutex
	ctx     context.Context // nil until it runs
	deliver func(context.Context, webhook.Ref) error
	turns   map[webhook.Ref]*queuedTurn
	work    sync.WaitGroup
}

// queuedTurn is a webhook with a running turn, or with one queued for a later time.
type queuedTurn struct {
	running, again, slow bool
	// failed counts the failed calls since the last one that succeeded.
	failed int
	// at is the time of the next turn; zero without a delay. stop cancels the wait.
	at   time.Time
	stop func()
}

func newDeliverer(c clock.Clock, log *slog.Logger) *deliverer {
	return &deliverer{
		clock: c, log: log, turns: map[webhook.Ref]*queuedTurn{},
		fast: make(chan struct{}, fastTurns), slow: make(chan struct{}, slowTurns),
	}
}

// run calls deliver for queued webhooks until ctx ends. It returns when no delivery is running.
func (d *deliverer) run(ctx context.Context, deliver func(context.Context, webhook.Ref) error) {
	d.mu.Lock()
	d.ctx, d.deliver = ctx, deliver
	d.mu.Unlock()
	<-ctx.Done()
	d.mu.Lock()
	d.ctx = nil
	d.mu.Unlock()
	d.work.Wait()
}

// Wake implements port.Wakes. Before run it drops the wakes, because the first sweep finds the
// webhooks.
func (d *deliverer) Wake(_ context.Context, wakes ...port.Wake) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil {
		return nil
	}
	for _, w := range wakes {
		d.queue(webhook.Ref{Tenant: w.Tenant, ID: w.Webhook}, w.Delay)
	}
	return nil
}

// queue starts a turn now or after the delay. The caller holds the lock.
func (d *deliverer) queue(ref webhook.Ref, delay time.Duration) {
	t := d.turns[ref]
	if t == nil {
		t = &queuedTurn{}
		d.turns[ref] = t
	}
	switch {
	case delay > 0:
		d.later(ref, t, delay)
	case t.running:
		t.again = true
	default:
		t.running = true
		d.work.Add(1)
		go d.turn(d.ctx, ref, t)
	}
}

// later queues a webhook after a delay, unless it is already queued for an earlier time.
func (d *deliverer) later(ref webhook.Ref, t *queuedTurn, delay time.Duration) {
	at := d.clock.Now().Add(delay)
	if !t.at.IsZero() && !at.Before(t.at) {
		return
	}
	if t.stop != nil {
		t.stop()
	}
	ctx, cancel := context.WithCancel(d.ctx)
	t.at, t.stop = at, cancel
	d.work.Go(func() {
		defer cancel()
		if clock.Sleep(ctx, d.clock, delay) != nil {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if t.at.Equal(at) {
			t.at, t.stop = time.Time{}, nil
		}
		if d.ctx != nil {
			d.queue(ref, 0)
		}
	})
}

// again is the backoff of a failed call.
var again = retry.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second, Multiplier: 2}

// turn delivers to a webhook until it is not queued again. After a failed call it queues the
// webhook for a later time.
func (d *deliverer) turn(ctx context.Context, ref webhook.Ref, t *queuedTurn) {
	defer d.work.Done()
	for more := true; more; {
		slots := d.fast
		if t.slow {
			slots = d.slow
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		began := d.clock.Now()
		err := d.deliver(ctx, ref)
		if err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "cannot deliver to a webhook; it is repeated", "tenant", ref.Tenant, "webhook", ref.ID, "error", err.Error())
		}
		t.slow = d.clock.Now().Sub(began) >= slowTurn
		<-slots
		d.mu.Lock()
		if err == nil {
			t.failed = 0
		} else if d.ctx != nil {
			d.later(ref, t, again.Delay(t.failed))
			t.failed++
		}
		more, t.again = t.again && ctx.Err() == nil, false
		if !more {
			t.running = false
			if t.at.IsZero() && !t.slow {
				delete(d.turns, ref)
			}
		}
		d.mu.Unlock()
	}
}

// deliverEvents runs the deliveries to webhooks until ctx ends.
func (s *Stack) deliverEvents(ctx context.Context) {
	s.loops.Go(func() { s.wakes.run(ctx, s.delivery.Deliver) })
	s.loops.Go(func() {
		ahead := webhook.LeaseTime + webhook.LeaseSlack // leases of a killed process may still be held
		for {
			if err := s.dispatch.WakeDue(ctx, ahead); err != nil && ctx.Err() == nil {
				s.config.Log.WarnContext(ctx, "cannot queue the due webhooks; the next sweep does", "error", err.Error())
			} else {
				ahead = 0
			}
			if !s.sleep(ctx) {
				return
			}
		}
	})
	s.loops.Go(func() {
		known := map[string]bool{}
		for {
			tenants, err := s.dispatch.Tenants(ctx)
			if err != nil && ctx.Err() == nil {
				s.config.Log.WarnContext(ctx, "cannot list the streams of events; it is repeated", "error", err.Error())
			}
			for _, tenant := range tenants {
				if !known[tenant] {
					known[tenant] = true
					s.loops.Go(func() { s.dispatchEvents(ctx, tenant) })
				}
			}
			if !s.sleep(ctx) {
				return
			}
		}
	})
}

// dispatchEvents queues webhooks as soon as the tenant's stream has new events for them.
func (s *Stack) dispatchEvents(ctx context.Context, tenant string) {
	for ctx.Err() == nil {
		position, err := s.dispatch.Position(ctx, tenant)
		if err == nil {
			err = s.feed.Wait(ctx, port.EventStream(tenant), position)
		}
		if err == nil {
			err = s.dispatch.Dispatch(ctx, tenant)
		}
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "cannot dispatch events to webhooks; it is repeated", "tenant", tenant, "error", err.Error())
			s.sleep(ctx)
		}
	}
}
