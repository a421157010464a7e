package answers

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// slotTime limits the time for which a task keeps its slot after the end of its stream or
	// attempt: the grace for engines that keep a closed request, and the calls.
	slotTime = 5*time.Second + 500*time.Millisecond
	// foundLate is the additional time if the process was killed or calls failed: a sweep then
	// releases the slot.
	foundLate = 30*time.Second + 2*sweepEvery + 2*slowest
	// noticed is the additional time for which a dispatcher keeps a request of a task that
	// another process has ended: until its next heartbeat.
	noticed = 10 * time.Second
)

// asking identifies a request of a process to an engine.
type asking struct {
	p    *process
	name string // of the client's request
}

// checkSlots checks that no task has a slot, or a request at an engine, for longer than
// permitted after the end of its stream.
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

// freeBy returns the time by which a slot must be free after an end.
func (w *world) freeBy(at time.Time) time.Time {
	if w.plan.reliable() {
		return at.Add(slotTime)
	}
	if at.Before(w.faultsEnd) {
		at = w.faultsEnd
	}
	return at.Add(slotTime + foundLate)
}

// endOf returns the earlier end of a run's stream or attempt; zero before both.
func (w *world) endOf(ctx context.Context, r run.Run) time.Time {
	at := w.streamEnd(ctx, r.TaskID)
	if ended := r.Attempt.EndedAt; r.State == run.Terminating && (at.IsZero() || ended.Before(at)) {
		at = ended
	}
	return at
}

// streamEnd returns the end time of a task's stream; zero before.
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

// asks records a request of a process. The returned function records its end.
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
