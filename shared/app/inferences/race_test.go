package inferences_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// interruption calls do once, before a call of the store or the feed for a task. left is the
// number of calls before that one.
type interruption struct {
	task atomic.Pointer[string]
	left atomic.Int64
	all  atomic.Bool
	do   func(task string)
}

func (i *interruption) before(tenant, task string) {
	if id := i.task.Load(); id != nil && tenant == client.Tenant && task == *id && i.left.Add(-1) == -1 {
		i.do(*id)
	}
}

type interruptedStore struct {
	port.Store
	*interruption
}

func (s interruptedStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	s.before(ref.Tenant, ref.ID)
	return s.Store.Load(ctx, ref)
}

func (s interruptedStore) Commit(ctx context.Context, writes ...port.Write) error {
	for _, w := range writes {
		s.before(w.Run.Tenant, w.Run.TaskID)
	}
	return s.Store.Commit(ctx, writes...)
}

// Create counts the calls for the created run from here on, if all is true.
func (s interruptedStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	existing, err := s.Store.Create(ctx, first, key, with...)
	if s.all.Load() && err == nil {
		s.task.Store(&first.Run.TaskID)
		s.before(first.Run.Tenant, first.Run.TaskID)
	}
	return existing, err
}

type interruptedFeed struct {
	port.AnswerFeed
	*interruption
}

func (f interruptedFeed) of(stream string) {
	if id := f.task.Load(); id != nil && stream == inference.StreamOf(client.Tenant, *id) {
		f.before(client.Tenant, *id)
	}
}

func (f interruptedFeed) Head(ctx context.Context, stream string) (port.Head, error) {
	f.of(stream)
	return f.AnswerFeed.Head(ctx, stream)
}

func (f interruptedFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	f.of(stream)
	return f.AnswerFeed.Append(ctx, stream, b)
}

func (f interruptedFeed) Read(ctx context.Context, stream string, after int64, limit int) ([]port.FeedRecord, error) {
	f.of(stream)
	return f.AnswerFeed.Read(ctx, stream, after, limit)
}

// TestCancelBetweenAnyTwoCalls cancels a task at each call of the store and the feed that
// its dispatcher makes, from the grant of its slot on.
func TestCancelBetweenAnyTwoCalls(t *testing.T) {
	t.Parallel()
	cancelAtEachCall(t, 1, 10, func(h *inferring, at *interruption, calls int64) run.Run {
		h.engines["r1"].FailNext(mockengine.FailStall, 1)
		first := h.ask(3)
		h.engines["r1"].WaitRunning(1)
		task := h.ask(3)
		at.left.Store(calls)
		at.task.Store(&task)
		_, err := h.tasks.Cancel(t.Context(), client, first, "")
		h.ok(err)
		return h.ended(task)
	})
}

// cancelAtEachCall cancels a task before a call of the store or the feed, in each round one
// call later, until a task makes fewer calls. play runs a task and returns its ended run; slots
// is the number of slots of the replica. The task and its stream end in the same way without a
// sweep, and the slot is free afterwards. At least least tasks must end cancelled. Pieces that
// arrive together share a call, so all rounds are repeated if too few were cancelled.
func cancelAtEachCall(t *testing.T, slots, least int, play func(h *inferring, at *interruption, calls int64) run.Run) {
	t.Helper()
	const mostTimes = 5
	var ends map[run.State]int
	for range mostTimes {
		if ends = cancelRounds(t, slots, play); ends[run.Cancelled] >= least {
			return
		}
	}
	t.Errorf("got %v, want more moments", ends)
}

// cancelRounds runs the rounds of cancelAtEachCall once, and counts the tasks by their final
// state.
func cancelRounds(t *testing.T, slots int, play func(h *inferring, at *interruption, calls int64) run.Run) map[run.State]int {
	t.Helper()
	const mostCalls = 100
	ends := map[run.State]int{}
	for calls := range int64(mostCalls) {
		at := &interruption{}
		h := newInferring(t, 1, slots, func(h *inferring) {
			h.store, h.feed = interruptedStore{h.store, at}, interruptedFeed{h.feed, at}
		})
		at.do = func(task string) {
			if _, err := h.tasks.Cancel(t.Context(), client, task, ""); err != nil && fault.Of(err).Code != fault.TaskAlreadyTerminal {
				t.Errorf("at call %d: %v", calls, err)
			}
		}
		r := play(h, at, calls)
		ends[r.State]++
		events := h.read(r.TaskID, inference.EventID{})
		if _, failed := events[len(events)-1].Data.(inference.Failure); failed != (r.State == run.Cancelled) || r.State != run.Cancelled && r.State != run.Completed {
			t.Errorf("at call %d: got %s and the events %q, want the same end", calls, r.State, names(events))
		}
		at.task.Store(nil)
		if next := h.ended(h.ask(1)); next.State != run.Completed {
			t.Errorf("at call %d: got %s for the next task, want Completed", calls, next.State)
		}
		h.stop()
		if at.left.Load() >= 0 {
			return ends
		}
	}
	t.Errorf("the dispatcher makes more than %d calls", mostCalls)
	return ends
}
