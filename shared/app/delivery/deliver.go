package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// LogRetention is the time for which the log keeps an ended delivery.
const LogRetention = 7 * 24 * time.Hour

// Sender sends a message to a webhook, without retries. It returns an error only if ctx ends.
// It is safe for concurrent use.
type Sender interface {
	Send(ctx context.Context, m hook.Message) (hook.Reply, error)
}

// Random is the source of random ids and secrets.
type Random interface {
	// Hex returns n random bytes in hexadecimal.
	Hex(n int) string
}

// TaskFinder is the part of a store that finds tasks.
type TaskFinder interface {
	// Find returns the run with the task id or run id. Its error is port.ErrNotFound without one.
	Find(ctx context.Context, tenant, id string) (run.Run, error)
}

// Deliverer delivers events to webhooks. It is safe for concurrent use, by any number of
// processes: a lease gives each webhook to one worker at a time.
type Deliverer struct {
	*Subscriptions
	tasks  TaskFinder
	sender Sender
	rand   func() float64
	owner  string
	record series.Recorder
	cache  *eventCache
}

// NewDeliverer returns a Deliverer. rand returns a random number, 0 <= n < 1. owner is the name of the worker: a worker that restarts with
// the same name keeps its leases. record receives the samples of attempts.
func NewDeliverer(s *Subscriptions, tasks TaskFinder, sender Sender, rand func() float64, owner string, record series.Recorder) *Deliverer {
	return &Deliverer{Subscriptions: s, tasks: tasks, sender: sender, rand: rand, owner: owner, record: record, cache: newEventCache()}
}

// Subscriptions reads and writes webhooks, and reads the streams of their events.
type Subscriptions struct {
	store    port.WebhookStore
	feed     port.Feed
	wakes    port.Wakes
	document WebhookDocument
	clock    clock.Clock
	log      *slog.Logger
	random   Random
	known    *liveWebhooks
}

// WebhookDocument encodes a webhook for clients, without the fields that deliveries change.
type WebhookDocument func(webhook.Webhook) ([]byte, error)

// NewSubscriptions returns the webhooks of a store.
func NewSubscriptions(
	store port.WebhookStore, feed port.Feed, wakes port.Wakes, document WebhookDocument, c clock.Clock, log *slog.Logger, random Random,
) *Subscriptions {
	s := &Subscriptions{store: store, feed: feed, wakes: wakes, document: document, clock: c, log: log, random: random}
	s.known = &liveWebhooks{store: store, clock: c, tenants: map[string]liveTenant{}}
	return s
}

// now returns the time without its monotonic part: it is compared with stored times.
func (s *Subscriptions) now() time.Time { return s.clock.Now().UTC().Round(0) }

// wake queues a webhook for Deliver after a delay. If that fails, or if the delay is above
// port.MaxWakeDelay, a sweep queues it.
func (s *Subscriptions) wake(ctx context.Context, ref webhook.Ref, after time.Duration) {
	if after > port.MaxWakeDelay {
		return // the sweep queues it
	}
	if err := s.wakes.Wake(ctx, port.Wake{Tenant: ref.Tenant, Webhook: ref.ID, Delay: max(after, 0)}); err != nil {
		s.log.WarnContext(ctx, "cannot queue a webhook; a sweep does", "tenant", ref.Tenant, "webhook", ref.ID, "error", err.Error())
	}
}

// errLeaseLost ends a pass whose batch took longer than its lease. Its attempts are
// repeated.
var errLeaseLost = errors.New("another worker delivers to the webhook")

// deliverMargin is the time that Deliver reserves before its deadline for the last write.
const deliverMargin = 5 * time.Second

// deliveryPass is the work of one call of Deliver.
type deliveryPass struct {
	*Deliverer
	w webhook.Webhook
	p webhook.Progress
}

// Deliver makes the attempts of a webhook that are due, and queues the webhook for the next
// one. It ends when nothing is due, or when the deadline of ctx leaves no time for another
// attempt. Each batch of attempts is stored before the next one begins, so a crash repeats at
// most one batch. It returns the errors of the ports; the caller may repeat the call.
func (s *Deliverer) Deliver(ctx context.Context, ref webhook.Ref) error {
	t, conflicts := &deliveryPass{Deliverer: s}, 0
	for t.hasTime(ctx) {
		more, err := t.step(ctx, ref)
		switch {
		case errors.Is(err, port.ErrNotFound), errors.Is(err, errLeaseLost):
			return nil
		case errors.Is(err, port.ErrConflict) && conflicts < port.CommitTries:
			conflicts++ // a client or another worker has changed the webhook
		case err != nil:
			return fmt.Errorf("cannot deliver to webhook %s: %w", ref.ID, err)
		case !more:
			return nil
		}
	}
	if ctx.Err() == nil {
		s.wake(ctx, ref, 0)
	}
	return nil
}

func (t *deliveryPass) hasTime(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() == nil && (!limited || deadline.Sub(t.clock.Now()) >= webhook.AttemptTime+deliverMargin)
}

// step reads the webhook and makes one batch of attempts. more reports that another one
// may be due.
func (t *deliveryPass) step(ctx context.Context, ref webhook.Ref) (more bool, err error) {
	if t.w, err = t.store.LoadWebhook(ctx, ref); err != nil {
		return false, err
	}
	if t.p, err = t.store.Progress(ctx, ref); err != nil {
		return false, err
	}
	now := t.now()
	if p, acquired, changed := t.p.Acquire(t.owner, now); !acquired {
		if changed {
			return false, t.store.SaveDeliveries(ctx, p)
		}
		return false, nil
	}
	if !t.w.Live() {
		return false, t.rest(ctx, time.Time{})
	}
	if verdict := t.p.Health.Verdict(now); verdict != "" {
		return true, t.disableOrWarn(ctx, verdict)
	}
	b, err := t.plan(ctx, now)
	if err != nil {
		return false, err
	}
	if b.idle() {
		t.p.Cursor, t.p.Epoch = b.to, b.epoch
		return false, t.rest(ctx, b.next)
	}
	acquired, _, _ := t.p.Acquire(t.owner, now)
	if err := t.store.SaveDeliveries(ctx, acquired); err != nil {
		return false, err
	}
	acquired.Version++
	t.p = acquired
	t.attempt(ctx, b)
	return t.settle(context.WithoutCancel(ctx), b, ctx.Err() != nil)
}

// rest ends the pass of a webhook with nothing due before next; zero is unknown. It stores the
// progress only if a later worker needs it. It removes the webhook of a deleted task.
func (t *deliveryPass) rest(ctx context.Context, next time.Time) error {
	now := t.now()
	if t.w.TaskID != "" && now.Sub(t.w.CreatedAt) >= webhook.Housekeeping {
		if _, err := t.tasks.Find(ctx, t.w.Tenant, t.w.TaskID); errors.Is(err, port.ErrNotFound) {
			return t.deleted(ctx, t.w, run.Actor{Subject: run.ActorSweep})
		}
	}
	p := t.p.Release(next, now)
	if t.p.Lease.Owner == "" && now.Before(t.p.WakeAt) && !p.WakeAt.Before(t.p.WakeAt) {
		return nil // a wake for that time is queued
	}
	if err := t.store.SaveDeliveries(ctx, p); err != nil || next.IsZero() {
		return err
	}
	t.wake(ctx, t.w.Ref(), next.Sub(now))
	return nil
}

// disableOrWarn disables the webhook of a lost receiver, or records a warning.
func (t *deliveryPass) disableOrWarn(ctx context.Context, why webhook.Reason) error {
	now := t.now()
	p, w := t.p.Release(time.Time{}, now), t.w
	if why == webhook.ReasonFailing {
		p.Health.Warned = true
	} else {
		w = w.Disable(why, run.ActorSweep, now)
	}
	t.log.WarnContext(ctx, "the receiver of a webhook fails", "tenant", w.Tenant, "webhook", w.ID, "reason", string(why),
		"last_success", p.Health.LastSuccess, "failures", p.Health.Failures)
	t.record(ctx, series.Count(series.Halts, 1, string(haltOf(why))))
	return t.save(ctx, &t.w, w, &p, run.Actor{Subject: run.ActorSweep}, why)
}

// haltOf converts the reason of a disabled or failing webhook to a label of series.Halts.
func haltOf(why webhook.Reason) series.Halt {
	switch why {
	case webhook.ReasonGone:
		return series.HaltGone
	case webhook.ReasonFailing:
		return series.HaltFailing
	default:
		return series.HaltDisabled
	}
}
