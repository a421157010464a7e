package streams

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// eventSweep is the interval of the sweeps of streams and webhooks.
	eventSweep = time.Minute
	// twins is the probability that two relays get the same changes.
	twins = 0.2
)

// relays are the scheduled and running calls of the relay.
type relays struct {
	// scheduled and running belong to the process with the start number start.
	scheduled, running bool
	start              int
	// handled is the number of stream records that each lane has relayed. busy reports whether
	// the relay of a lane is running.
	handled [harness.Lanes]int
	busy    [harness.Lanes]bool
	swept   time.Time
	// hosts are idle processes. In the local home one host serves all calls.
	hosts []*host
	// turns are the webhooks with a running delivery in the local process. The value is true if
	// the delivery must run once more.
	turns map[webhook.Ref]bool
}

// StartEvents schedules the relay and the first event sweep of a new process.
func (w *Streams) StartEvents() {
	w.Events.relays = relays{start: w.Starts, handled: w.Events.handled, turns: map[webhook.Ref]bool{}}
	w.Events.relayAfter(w.UpTo(time.Second))
	w.Time.Push(0, true, func() { w.Time.Spawn(true, func() { w.sweepEvents(webhook.LeaseTime + webhook.LeaseSlack) }) })
}

// relayAfter schedules the relay, unless it is already scheduled.
func (m *streamModel) relayAfter(d time.Duration) {
	if m.scheduled {
		return
	}
	w, start := m.w, m.start
	m.scheduled = true
	w.Time.Push(d, true, func() {
		if m.start != start {
			return
		}
		m.scheduled = false
		if m.running {
			m.relayAfter(time.Second)
			return
		}
		w.Time.Spawn(true, w.relay)
	})
}

// relay relays committed changes. After a failure it schedules itself again.
func (w *Streams) relay() {
	m := w.Events
	if w.Process.Crashed {
		return
	}
	start := m.start
	m.running = true
	call := w.relayOutbox
	if w.Home.SurvivesCrash() {
		call = w.invokeRelays
	}
	again := call()
	if m.start != start {
		return
	}
	if m.running = false; again {
		m.relayAfter(time.Second)
	}
	w.Time.Push(w.UpTo(time.Second), true, func() { w.Time.Spawn(true, w.dispatch) })
}

// relayOutbox relays the outbox of the local process. It returns true if it must run again.
func (w *Streams) relayOutbox() (again bool) {
	drain := func() bool {
		left := true
		w.onHost(func(ctx context.Context, h *host) {
			drained, err := h.relay.Drain(ctx, w.Process.Store, func(c port.StoredChange) delivery.Change {
				change := delivery.Change{ID: c.ID, At: c.At}
				change.Change, change.Err = sqlite.ChangeOf(c.Record)
				return change
			}, nil)
			left = err != nil || drained.Left > 0
		})
		return left
	}
	if w.Chance(twins) {
		w.Time.Push(w.UpTo(time.Second), true, func() { w.Time.Spawn(true, func() { drain() }) })
	}
	return drain()
}

// invokeRelays calls the function concurrently for each lane with a batch of the table's
// stream. A failed batch is delivered again, and sometimes a successful one, too.
func (w *Streams) invokeRelays() (again bool) {
	m := w.Events
	for lane := range harness.Lanes {
		if m.busy[lane] {
			again = true
			continue
		}
		records, all, err := w.Home.Changes(lane, m.handled[lane])
		if err != nil {
			w.Broken = err
			return false
		}
		if len(records) == 0 {
			m.handled[lane] = all
			continue
		}
		again = true
		start := m.start
		m.busy[lane] = true
		w.Time.Push(0, true, func() {
			w.Time.Spawn(true, func() {
				w.invokeLane(lane, records)
				if m.start == start {
					m.busy[lane] = false
				}
			})
		})
	}
	return again
}

// invokeLane calls the function with one batch of a lane.
func (w *Streams) invokeLane(lane int, changes []harness.Streamed) {
	m, start := w.Events, w.Events.start
	changes = changes[:min(len(changes), 1+w.Random.IntN(40))]
	records := make([]json.RawMessage, len(changes))
	for i, c := range changes {
		records[i] = c.Record
	}
	if w.Chance(twins) {
		pause := w.UpTo([]time.Duration{2 * time.Second, time.Minute}[w.Random.IntN(2)])
		w.Time.Push(pause, true, func() { w.Time.Spawn(true, func() { w.invokeWith(relay.Batch{Records: records}) }) })
	}
	answer, ok := w.invokeWith(relay.Batch{Records: records})
	if !ok || m.start != start {
		return
	}
	m.handled[lane] = changes[len(changes)-1].Number
	for _, failed := range answer.Failures {
		for _, c := range changes {
			if failed.Number == harness.Sequence(c.Record) {
				m.handled[lane] = min(m.handled[lane], c.Number-1)
			}
		}
	}
}

// invokeWith calls the relay's function with a batch.
func (w *Streams) invokeWith(batch relay.Batch) (answer relay.Answer, ok bool) {
	payload, err := json.Marshal(batch)
	if err != nil {
		w.Broken = err
		return answer, false
	}
	var out json.RawMessage
	ok = w.onHost(func(ctx context.Context, h *host) { out, err = h.function(ctx, payload) })
	if !ok || err != nil {
		return answer, false
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		w.Fail("cannot decode the answer of the relay: %v", err)
		return answer, false
	}
	return answer, true
}

// dispatch wakes the webhooks that have new events.
func (w *Streams) dispatch() {
	w.onHost(func(ctx context.Context, h *host) {
		if err := h.dispatch.Dispatch(ctx, harness.Client.Tenant); err != nil {
			w.Note("dispatch: %v", err)
		}
	})
}

// sweepEvents writes the last checkpoints, publishes the events that the bus lacks, and wakes
// webhooks.
func (w *Streams) sweepEvents(ahead time.Duration) {
	w.Events.swept = w.Time.Now
	if w.Home.SurvivesCrash() {
		w.invokeWith(relay.Batch{DetailType: "Scheduled Event"})
	}
	w.onHost(func(ctx context.Context, h *host) {
		waking := h.dispatch.WakeDue(ctx, ahead)
		var err error
		if !w.Home.SurvivesCrash() {
			err = errors.Join(h.sweep.Sweep(ctx), h.relay.Trim(ctx))
		}
		w.Note("sweep of events: %v, %v", waking, err)
	})
}

// Wake implements port.Wakes. On AWS it is a queue that delivers some wakes twice, locally the
// memory of the process.
func (m *streamModel) Wake(_ context.Context, wakes ...port.Wake) error {
	w, start := m.w, m.start
	if w.Home.SurvivesCrash() && w.Injects("lost call", w.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	for _, wake := range wakes {
		ref := webhook.Ref{Tenant: wake.Tenant, ID: wake.Webhook}
		deliver := func() {
			if m.start == start {
				w.Time.Spawn(true, func() { w.deliver(ref) })
			}
		}
		w.Time.Push(wake.Delay, true, deliver)
		if w.Home.SurvivesCrash() && w.Chance(twins/2) {
			w.Time.Push(wake.Delay+w.UpTo(time.Minute), true, deliver)
		}
	}
	return nil
}

// deliver delivers to a webhook. The local process has one delivery per webhook at a time. The
// queue of AWS repeats a failed call.
func (w *Streams) deliver(ref webhook.Ref) {
	m, start := w.Events, w.Events.start
	local := !w.Home.SurvivesCrash()
	if _, running := m.turns[ref]; local && running {
		m.turns[ref] = true
		return
	}
	m.turns[ref] = false
	var err error
	ok := w.onHost(func(ctx context.Context, h *host) { err = h.delivery.Deliver(ctx, ref) })
	if m.start != start {
		return
	}
	again := local && m.turns[ref]
	delete(m.turns, ref)
	if again || !local && (!ok || err != nil) {
		pause := time.Duration(0)
		if !again {
			pause = eventSweep
		}
		w.Time.Push(pause, true, func() { w.Time.Spawn(true, func() { w.deliver(ref) }) })
	}
}
