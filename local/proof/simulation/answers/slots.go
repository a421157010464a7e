package answers

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

const (
	// slotTime is how long a task may keep its slot after the end of its stream or its attempt:
	// the grace of engines that keep a closed request, and the calls besides.
	slotTime = 5*time.Second + 500*time.Millisecond
	// foundLate is how much later a slot is free whose process was killed or whose calls
	// failed: a sweep finds it.
	foundLate = 30*time.Second + 2*sweepEvery + 2*slowest
	// noticed is how long a dispatcher has a request for a task that another process has ended,
	// besides slotTime: until its next heartbeat.
	noticed = 10 * time.Second
)

// asking is a request of a process to an engine.
type asking struct {
	p    *process
	name string // of the client's request
}

// checkSlots checks that no task has a slot of the pool, or a request at an engine, for longer
// than it may after the end of its stream.
func (w *world) checkSlots(ctx context.Context) {
	now := bubble.Now()
	for _, r := range w.holders {
		if at := w.endOf(ctx, r); !at.IsZero() && now.After(w.freeBy(at)) {
			w.fail("%s is %s, and has a slot %s after the end of its stream or its attempt", r.ID, r.State, now.Sub(at))
		}
	}
	w.mu.Lock()
	open := map[string]*task{}
	for each := range w.asking {
		if t := w.tasks[each.name]; t != nil && !each.p.dead.Load() {
			open[each.p.name] = t
		}
	}
	w.mu.Unlock()
	for who, t := range open {
		at := w.streamEnd(ctx, t.id)
		if w.deployed() && !at.IsZero() {
			at = at.Add(noticed)
		}
		if !at.IsZero() && now.After(w.freeBy(at)) {
			w.fail("%s has a request for %s %s after the end of its stream", who, t.id, now.Sub(at))
		}
	}
}

// freeBy returns when a slot is free after an end.
func (w *world) freeBy(at time.Time) time.Time {
	if w.plan.reliable() {
		return at.Add(slotTime)
	}
	if at.Before(w.faultsEnd) {
		at = w.faultsEnd
	}
	return at.Add(slotTime + foundLate)
}

// endOf returns when the stream of a run or its attempt has ended; zero before.
func (w *world) endOf(ctx context.Context, r run.Run) time.Time {
	at := w.streamEnd(ctx, r.TaskID)
	if ended := r.Attempt.EndedAt; r.State == run.Terminating && (at.IsZero() || ended.Before(at)) {
		at = ended
	}
	return at
}

// streamEnd returns when the stream of a task has ended; zero before.
func (w *world) streamEnd(ctx context.Context, id string) time.Time {
	stream := inference.StreamOf(tenant, id)
	head, err := w.raw.feed.Head(ctx, stream)
	state, bad := inference.DecodeState(head.State)
	if err != nil || bad != nil {
		w.fail("cannot read the stream of %s: %v", id, errors.Join(err, bad))
	}
	if !state.Ended {
		return time.Time{}
	}
	var last []port.FeedRecord
	if last, err = w.raw.feed.Read(ctx, stream, head.Newest-1, 1); err != nil || len(last) == 0 {
		w.fail("cannot read the end of the stream of %s: %v", id, err)
		return time.Time{}
	}
	return last[0].At
}

// asks notes a request of a process until it ends.
func (w *world) asks(of asking) (end func()) {
	change := func(by int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.asking[of] += by; w.asking[of] == 0 {
			delete(w.asking, of)
		}
	}
	change(1)
	return func() { change(-1) }
}
