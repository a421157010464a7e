package streams

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

// settleTime exceeds the time of all delivery attempts, and the longest failure of a receiver.
const settleTime = 12 * 24 * time.Hour

// SettleEvents ends all faults except those of dead receivers, and delivers the remaining
// events. It calls each after each event of the world.
func (w *Streams) SettleEvents(each func()) {
	before := w.Plan
	w.Plan.LostCalls, w.Plan.LostCommits, w.Plan.Crashes, w.Plan.Interrupts, w.Plan.SlowCommits, w.Plan.ServiceFaults = 0, 0, 0, 0, 0, 0
	w.Settling, w.Outages = true, [harness.OutageKinds]time.Time{}
	defer func() { w.Plan = before }()
	until, done := w.Time.Now.Add(settleTime), false
	var look func()
	look = func() {
		w.sweepEvents(0)
		w.Events.relayAfter(0)
		var next time.Time
		if next, done = w.eventsSettled(); !done {
			w.Time.Push(max(next.Sub(w.Time.Now), time.Second), true, func() { w.Time.Spawn(true, look) })
		}
	}
	w.Time.Push(0, true, func() { w.Time.Spawn(true, look) })
	for !done && len(w.Problems) == 0 && w.Broken == nil {
		w.Time.Step()
		each() // an earlier sweep may still end
		if w.Time.Now.After(until) {
			w.Fail("events are not delivered after %s", settleTime)
		}
	}
}

// eventsSettled reports whether all events are relayed and delivered. Otherwise it returns the
// time of the next check.
func (w *Streams) eventsSettled() (next time.Time, done bool) {
	done, next = true, w.Time.Now.Add(webhook.Housekeeping)
	w.Observe(func() {
		ctx := context.Background()
		if left, _, err := w.Process.Store.Stored(ctx, "", 1); err != nil || len(left) > 0 {
			done, next = false, w.Time.Now
		}
		for lane := range harness.Lanes {
			if left, _, err := w.Home.Changes(lane, w.Events.handled[lane]); err != nil || len(left) > 0 {
				done, next = false, w.Time.Now
			}
		}
		for _, s := range w.Subscribers {
			hook, err := w.Process.Store.LoadWebhook(ctx, s.ref)
			if err != nil || !hook.Live() {
				continue
			}
			p, err := w.Process.Store.Progress(ctx, s.ref)
			if err != nil || p.Cursor < w.Events.Newest || p.Pending > 0 {
				done = false
			}
			if p.WakeAt.Before(next) {
				next = p.WakeAt
			}
		}
	})
	return next, done && w.Events.sealed()
}

// sealed reports whether the last checkpoint covers all events and the bus has received them.
func (m *streamModel) sealed() bool {
	feed, err := m.w.Home.Feed(context.Background())
	if err != nil || m.Newest == 0 {
		return m.Newest == 0
	}
	sealed := false
	m.w.Observe(func() {
		marks, err := feed.Marks(context.Background(), streamName, m.Newest-1, 1)
		sealed = err == nil && len(marks) > 0
	})
	return sealed && (!m.w.Home.SurvivesCrash() || len(m.published) == int(m.Newest))
}

// CheckEvents checks that the stream has each event of each run once, that signatures and
// checkpoints verify, and that each event was delivered or dead-lettered.
func (w *Streams) CheckEvents(ctx context.Context) {
	m := w.Events
	known := map[string]bool{}
	for _, r := range w.Records.Ordered {
		w.checkRunEvents(ctx, r, known)
	}
	for id, committed := range m.notes {
		if _, has := m.positions[id]; has {
			known[id] = true
		} else if committed {
			w.Fail("the stream misses the note %s", id)
		}
	}
	for id, position := range m.positions {
		if !known[id] {
			w.Fail("the stream has event %s at %d, which was not committed: %s", id, position, m.all[position-1].IdempotencyKey)
		}
	}
	if m.Newest > 0 {
		w.checkProof(ctx)
	}
	for _, s := range w.Subscribers {
		w.checkDelivered(ctx, s)
	}
}

// checkRunEvents checks that the stream has the events of a run and the events derived from
// them.
func (w *Streams) checkRunEvents(ctx context.Context, r *run.Run, known map[string]bool) {
	m := w.Events
	all, err := w.Process.Store.Events(ctx, r.Ref(), 0, 1000)
	if err != nil {
		w.Fail("cannot read the events of %s: %v", r.ID, err)
	}
	for _, e := range all {
		if known[e.ID] = true; m.positions[e.ID] == 0 {
			w.Fail("the stream misses event %d of %s, %s", e.Seq, r.ID, e.Type)
		}
	}
	fired, outputs := 0, 0
	for id, position := range m.positions {
		switch e := m.all[position-1]; {
		case e.Schedule != nil && e.Schedule.RunID == r.ID:
			known[id] = true
			fired++
		case e.Job != nil && e.Job.RunID == r.ID && slices.Contains([]eventtype.Type{eventtype.ExportCompleted, eventtype.PackRunArtifact}, e.EventType):
			known[id] = true
			outputs++
		}
	}
	wantFired, wantOutputs := 0, 0
	if !r.FiredAt.IsZero() {
		wantFired = 1
	}
	if r.State == run.Completed && r.Output != nil {
		wantOutputs = 1
	}
	if fired != wantFired || outputs != wantOutputs {
		w.Fail("the stream has %d firings and %d outputs of %s, want %d and %d", fired, outputs, r.ID, wantFired, wantOutputs)
	}
}

// checkProof verifies the exported stream.
func (w *Streams) checkProof(ctx context.Context) {
	m := w.Events
	file, err := m.file(ctx)
	if err != nil {
		w.Fail("cannot export the stream: %v", err)
		return
	}
	keys, err := m.verifiers(ctx)
	if err != nil {
		w.Broken = err
		return
	}
	proof, err := events.Verify(ctx, bytes.NewReader(file), keys)
	if err != nil || proof.From != 0 || proof.To != m.Newest || proof.Events != m.Newest {
		w.Fail("the stream of %d events is proved as %+v, %v", m.Newest, proof, err)
	}
}

// checkDelivered checks that a receiver accepted each event of its webhook, unless all attempts
// failed or the webhook was paused or disabled.
func (w *Streams) checkDelivered(ctx context.Context, s *subscriber) {
	hook, err := w.Process.Store.LoadWebhook(ctx, s.ref)
	if err != nil {
		w.Fail("%s has no webhook: %v", s.name, err)
		return
	}
	if hook.Disabled != nil && !s.gone && !s.dead && s.failures < 1 {
		w.Fail("%s is disabled: %s", s.name, hook.Disabled.Reason)
	}
	p, err := w.Process.Store.Progress(ctx, s.ref)
	if err != nil {
		w.Fail("%s has no progress: %v", s.name, err)
	}
	for i, e := range w.Events.all[max(s.begin, 0):] {
		position := max(s.begin, 0) + int64(i) + 1
		missed := slices.ContainsFunc(p.Missed, func(r webhook.Range) bool { return r.From <= position && position <= r.To })
		switch delivery, err := w.Process.Store.Delivery(ctx, s.ref, position); {
		case !s.settings.Filter.Matches(e):
		case err == nil && delivery.State == webhook.Delivered && s.accepted[position] == 0:
			w.Fail("the event at %d is Delivered to %s, which did not accept it", position, s.name)
		case s.accepted[position] > 0, missed && s.paused:
		case hook.Disabled != nil && (position > p.Cursor || err == nil && delivery.State == webhook.Pending):
		case err == nil && delivery.State == webhook.Failed && s.ended(position):
		case w.Dated() && err != nil && s.ended(position): // its record has expired
		default:
			w.Fail("%s did not get the event at %d after %d attempts: delivery %+v, %v; progress %+v", s.name, position, s.tries[position], delivery, err, p)
		}
	}
}
