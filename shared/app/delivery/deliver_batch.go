package delivery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// deliverPage is the number of records of one read, and deliverScan the number of records after
// which a batch scans no further page.
const (
	deliverPage = 200
	deliverScan = 5000
)

// pendingDelivery is a delivery to attempt, with its event.
type pendingDelivery struct {
	webhook.Delivery
	event *streamEvent
}

// batch is the plan and the result of one step of a pass.
type batch struct {
	room int
	send []pendingDelivery
	// deferred are deliveries that are stored without an attempt: they wait for an earlier one
	// of their task, their event is gone, or they were interrupted.
	deferred []webhook.Delivery
	// from and to are the cursor before and after the batch. epoch is the epoch of the stream.
	from, to int64
	epoch    string
	// replay is the first redelivery as it is after the batch; nil without one.
	replay *webhook.Replay
	// more: the stream may have further events for the webhook.
	more bool
	// next is when the next attempt may be made if the batch has none; zero is unknown.
	next time.Time
	// busy has the tasks with a pending delivery, which blocks further ones of an ordered
	// webhook. The value is true if this batch sends it.
	busy map[string]bool

	mu      sync.Mutex
	results []webhook.Result
}

// idle reports whether the batch changes nothing but the cursor, by less than deliverScan.
func (b *batch) idle() bool {
	return len(b.send)+len(b.deferred) == 0 && b.replay == nil && b.to < b.from+deliverScan
}

// full reports whether the batch takes no further event.
func (b *batch) full() bool { return b.room == 0 || len(b.send)+len(b.deferred) >= port.MaxDeliveries }

// earlier sets next to a time that is earlier and not zero.
func (b *batch) earlier(at time.Time) {
	if !at.IsZero() && (b.next.IsZero() || at.Before(b.next)) {
		b.next = at
	}
}

// plan chooses the next attempts: due retries, then redeliveries, then new events.
func (t *deliveryPass) plan(ctx context.Context, now time.Time) (*batch, error) {
	head, err := t.feed.Head(ctx, port.EventStream(t.w.Tenant))
	if err != nil {
		return nil, err
	}
	if t.p.Epoch != "" && head.Epoch != t.p.Epoch { // the positions are of a lost stream
		t.p.Cursor, t.p.Replays = 0, nil
	}
	b := &batch{from: t.p.Cursor, to: t.p.Cursor, epoch: head.Epoch, busy: map[string]bool{}}
	if t.p.Pending == 0 && len(t.p.Replays) == 0 && head.Newest <= t.p.Cursor {
		return b, nil
	}
	var held time.Time
	if b.room, held = t.p.Window(t.w.RateLimit, now); b.room == 0 {
		b.earlier(held)
		return b, nil
	}
	if err := t.planPending(ctx, b, now); err != nil {
		return nil, err
	}
	if t.p.Pending >= webhook.MaxPending {
		return b, nil
	}
	if err := t.planReplay(ctx, b); err != nil {
		return nil, err
	}
	return b, t.planNew(ctx, b)
}

// planPending adds the due retries. It gives up a delivery whose event is no longer stored.
func (t *deliveryPass) planPending(ctx context.Context, b *batch, now time.Time) error {
	if t.p.Pending == 0 {
		return nil
	}
	pending, err := t.store.PendingDeliveries(ctx, t.w.Ref(), webhook.MaxPending)
	if err != nil {
		return err
	}
	ready, next := t.w.Ready(pending, now)
	b.earlier(next)
	for _, d := range pending {
		b.busy[d.TaskID] = false
	}
	for _, d := range ready {
		if b.full() {
			b.more = true
			break
		}
		e, err := t.eventAt(ctx, d.Position)
		if err != nil {
			return err
		}
		if e == nil || e.EventID != d.EventID {
			b.deferred = append(b.deferred, d.GiveUp("the event is no longer stored", now, LogRetention))
			continue
		}
		b.take(d, e)
	}
	return nil
}

func (b *batch) take(d webhook.Delivery, e *streamEvent) {
	b.send = append(b.send, pendingDelivery{d, e})
	b.room--
	b.busy[d.TaskID] = true
}

// planReplay adds events of the first redelivery.
func (t *deliveryPass) planReplay(ctx context.Context, b *batch) error {
	if len(t.p.Replays) == 0 || b.full() {
		b.more = b.more || len(t.p.Replays) > 0
		return nil
	}
	r := t.p.Replays[0]
	to, err := t.scan(ctx, b, r.Next-1, r.To, func(e *streamEvent) error {
		if r.Filter != nil && !r.Filter.Matches(e.Envelope) {
			return nil
		}
		d, err := t.store.Delivery(ctx, t.w.Ref(), e.position)
		switch {
		case errors.Is(err, port.ErrNotFound):
			if r.Failed && !t.p.HasMissed(e.position) {
				return nil
			}
			d = e.delivery()
		case err != nil:
			return err
		case d.WasPending, r.Failed && d.State != webhook.Failed:
			return nil
		}
		r.Sent++
		t.offer(b, d.Again(&events.Replay{Ordinal: r.Sent, Total: max(r.Total, r.Sent)}), e)
		return nil
	})
	r.Next = to + 1
	b.replay, b.more = &r, true
	return err
}

// planNew adds the events behind the cursor.
func (t *deliveryPass) planNew(ctx context.Context, b *batch) (err error) {
	b.to, err = t.scan(ctx, b, b.from, 0, func(e *streamEvent) error {
		t.offer(b, e.delivery(), e)
		return nil
	})
	return err
}

// offer adds a delivery to the attempts of the batch. For an ordered webhook, it stores the
// delivery without an attempt while another one of its task is pending.
func (t *deliveryPass) offer(b *batch, d webhook.Delivery, e *streamEvent) {
	if _, behind := b.busy[d.TaskID]; behind && t.w.Ordered && d.TaskID != "" {
		b.deferred = append(b.deferred, d)
		return
	}
	b.take(d, e)
}

// scan reads the stream behind the position after, up to last or, if last is 0, to its end. It
// calls do for each event that the webhook selects. It stops when the batch is full, or after
// deliverScan positions. It returns the position up to which it has read.
func (t *deliveryPass) scan(ctx context.Context, b *batch, after, last int64, do func(*streamEvent) error) (int64, error) {
	for begin := after; after < begin+deliverScan; {
		if b.full() {
			b.more = true
			return after, nil
		}
		records, err := t.feed.Read(ctx, port.EventStream(t.w.Tenant), after, deliverPage)
		if err != nil {
			return after, err
		}
		if len(records) == 0 {
			return max(after, last), nil
		}
		for _, r := range records {
			if last > 0 && r.Position > last {
				return last, nil
			}
			e, err := t.cache.get(t.w.Tenant, r)
			if err != nil {
				t.log.ErrorContext(ctx, "an event of the stream cannot be read", "tenant", t.w.Tenant, "position", r.Position, "error", err.Error())
			} else if t.w.Filter.Matches(e.Envelope) {
				if b.full() {
					b.more = true
					return after, nil
				}
				if err := do(e); err != nil {
					return after, err
				}
			}
			after = r.Position
		}
	}
	b.more = true
	return after, nil
}

// attempt sends the events of a batch concurrently. Deliveries that the end of ctx interrupts
// are kept for a later attempt.
func (t *deliveryPass) attempt(ctx context.Context, b *batch) {
	older, newer, err := signingKeys(t.w, t.now())
	if err != nil {
		t.log.ErrorContext(ctx, "cannot sign deliveries", "webhook", t.w.ID, "error", err.Error())
	}
	var sends sync.WaitGroup
	for _, s := range b.send {
		sends.Go(func() {
			reply, err := t.sender.Send(ctx, hook.Message{
				URL: t.w.URL, Body: s.event.body(s.Replay), Key: older, Newer: newer, ID: s.EventID, Timeout: webhook.AttemptTime,
			})
			b.mu.Lock()
			defer b.mu.Unlock()
			if err != nil {
				b.deferred = append(b.deferred, s.Delivery)
				return
			}
			t.record(ctx, series.Count(series.Attempts, 1, string(outcomeOf(reply))),
				series.Sample{Name: series.AttemptLatency, Value: reply.Latency.Seconds()})
			a := attemptOf(reply, t.now())
			b.results = append(b.results, webhook.Result{Delivery: s.Delivery, Attempt: a, RetryAfter: reply.RetryAfter})
			t.log.LogAttrs(ctx, slog.LevelDebug, "event delivered", slog.String("tenant", t.w.Tenant), slog.String("webhook", t.w.ID),
				slog.String("event_id", s.EventID), slog.Int("status", a.Status), slog.Int64("latency_ms", a.LatencyMS), slog.String("problem", a.Error))
		})
	}
	sends.Wait()
}

// signingKeys returns the keys of a webhook: the older one, and those that replace it.
func signingKeys(w webhook.Webhook, now time.Time) (older hook.Key, newer []hook.Key, err error) {
	for i, secret := range w.Signing(now) {
		key, err := hook.ParseKey(secret.Text)
		if err != nil {
			return older, newer, err
		}
		if i == 0 {
			older = key
		} else {
			newer = append(newer, key)
		}
	}
	return older, newer, nil
}

func outcomeOf(reply hook.Reply) series.Outcome {
	switch {
	case reply.Status > 0:
		return series.OutcomeOf(reply.Status)
	case reply.TimedOut:
		return series.OutcomeTimeout
	case reply.Refused:
		return series.OutcomeRefused
	}
	return series.OutcomeConnection
}

func attemptOf(reply hook.Reply, now time.Time) webhook.Attempt {
	return webhook.Attempt{
		At: now, Status: reply.Status, LatencyMS: reply.Latency.Milliseconds(), Error: reply.Problem, Response: reply.Body,
	}
}

// settle stores the results of a batch, also if a client has changed the progress meanwhile.
// last: no further batch follows, so the lease ends. more reports that the next batch can
// begin.
func (t *deliveryPass) settle(ctx context.Context, b *batch, last bool) (more bool, err error) {
	slices.SortFunc(b.results, func(x, y webhook.Result) int {
		return cmp.Or(x.Attempt.At.Compare(y.Attempt.At), cmp.Compare(x.Delivery.Position, y.Delivery.Position))
	})
	slices.SortFunc(b.deferred, func(x, y webhook.Delivery) int { return cmp.Compare(x.Position, y.Position) })
	for range port.CommitTries {
		now := t.now()
		if t.p.Lease.Owner != t.owner {
			return false, errLeaseLost
		}
		p, deliveries := t.p.Settle(b.results, t.w.RateLimit, LogRetention, now, t.rand)
		p = p.Count(b.deferred)
		if p.Cursor == b.from {
			p.Cursor, p.Epoch = b.to, b.epoch
		}
		if r := b.replay; r != nil && len(p.Replays) > 0 && p.Replays[0].ID == r.ID && p.Replays[0].Range == r.Range && p.Replays[0].Failed == r.Failed {
			p.Replays = slices.Clone(p.Replays)
			if p.Replays[0] = *r; r.Next > r.To {
				p.Replays = p.Replays[1:]
			}
		}
		next := b.after(t.w.Ordered, p, deliveries, now)
		if more = b.more || p.Again || p.Health.Verdict(now) != "" || !next.IsZero() && !next.After(now); more && !last {
			p = p.Renew(t.owner, now)
			p.Again = false
		} else if p = p.Release(next, now); more {
			p.WakeAt = now
		}
		err := t.store.SaveDeliveries(ctx, p, append(deliveries, b.deferred...)...)
		if err == nil {
			if p.Health.Failing() && !t.p.Health.Failing() {
				t.record(ctx, series.Count(series.Halts, 1, string(series.HaltCircuit)))
			}
			if !more && !next.IsZero() {
				t.wake(ctx, t.w.Ref(), next.Sub(now))
			}
			return more && !last, nil
		}
		if !errors.Is(err, port.ErrConflict) {
			return false, err
		}
		if t.p, err = t.store.Progress(ctx, t.w.Ref()); err != nil {
			return false, err
		}
	}
	return false, fault.New(fault.Unavailable, "too many concurrent changes of webhook %s; retry", t.w.ID)
}

// after returns the time of the next attempt after a batch; zero is unknown.
func (b *batch) after(ordered bool, p webhook.Progress, settled []webhook.Delivery, now time.Time) time.Time {
	for _, d := range settled {
		b.earlier(d.Due)
	}
	if len(b.deferred) > 0 || ordered && p.Pending > 0 { // a delivery that they waited for may have ended
		b.earlier(now)
	}
	if at := p.Health.HeldUntil; !b.next.IsZero() && b.next.Before(at) {
		return at
	}
	return b.next
}
