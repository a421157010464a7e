package inferences_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// eventsOf returns the events of a run without their times, up to a type.
func (h *inferring) eventsOf(task string, last run.EventType) (found []string) {
	h.Helper()
	events, err := h.store.Events(h.Context(), run.Ref{Tenant: client.Tenant, ID: task}, 0, 100)
	h.ok(err)
	for _, e := range events {
		found = append(found, fmt.Sprintln(e.Seq, e.Type, e.From, e.State, e.Attempt, e.Actor))
		if e.Type == last {
			break
		}
	}
	return found
}

// The replicas of these tests have two slots, because a slot becomes free a moment after the
// end of its task.

// TestTaskThatBeginsAtOnceHasAllEvents compares the events of a task that is created, admitted
// and begun in one commit with those of a task with a commit for each step.
func TestTaskThatBeginsAtOnceHasAllEvents(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 2)
	slow := h.ask(1)
	h.ended(slow)
	fast := h.ask(1)
	r := h.ended(fast)
	want, got := h.eventsOf(slow, run.EventCompleted), h.eventsOf(fast, run.EventCompleted)
	if fmt.Sprint(got) != fmt.Sprint(want) || len(want) < 5 {
		t.Errorf("got the events %v, want %v", got, want)
	}
	if r.Attempt.Number != 1 || r.Attempt.Replica != "r1" {
		t.Errorf("got attempt %d at %q, want the first at r1", r.Attempt.Number, r.Attempt.Replica)
	}
}

// TestFullPoolQueuesATaskThatCouldBegin fills a pool that has fewer slots than its replica.
func TestFullPoolQueuesATaskThatCouldBegin(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 4)
	pool, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	h.ok(err)
	pool.Limit = 1
	h.ok(h.store.SavePool(t.Context(), pool))
	h.ended(h.ask(1))
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	first := h.ask(3)
	h.engines["r1"].WaitRunning(1)
	second := h.ask(2)
	if r, err := h.store.Find(t.Context(), client.Tenant, second); err != nil || !r.Queued() {
		t.Fatalf("got %s, queued %t (%v), want a queued task", r.State, r.Queued(), err)
	}
	_, err = h.tasks.Cancel(t.Context(), client, first, "")
	h.ok(err)
	if r := h.ended(second); r.State != run.Completed || r.Attempt.Number != 1 {
		t.Errorf("got %s in attempt %d, want Completed in the first", r.State, r.Attempt.Number)
	}
	// The replica has released all slots.
	pool.Limit, pool.Version = 4, pool.Version+1
	h.ok(h.store.SavePool(t.Context(), pool))
	h.clock.Advance(2 * time.Second) // until the limit is read again
	var tasks []string
	for range 4 {
		h.engines["r1"].FailNext(mockengine.FailStall, 1)
		tasks = append(tasks, h.ask(3))
	}
	h.engines["r1"].WaitRunning(4)
	for _, task := range tasks {
		_, err := h.tasks.Cancel(t.Context(), client, task, "")
		h.ok(err)
	}
}

// TestReplicaThatStoppedIsAskedAgain fails a request to a replica that was ready a moment ago.
// A further attempt completes the task.
func TestReplicaThatStoppedIsAskedAgain(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 2, 1)
	h.ended(h.ask(1))
	h.ended(h.ask(1))
	for _, e := range h.engines {
		e.FailNext(mockengine.FailStart, 0)
	}
	if r := h.ended(h.ask(1)); r.State != run.Completed || r.Attempt.Number < 2 {
		t.Errorf("got %s in attempt %d, want Completed in a further one", r.State, r.Attempt.Number)
	}
}

// TestFastClientKeepsItsReplica creates the next task as soon as the client has read the end of
// the last one, when its slot may not be free yet.
func TestFastClientKeepsItsReplica(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 2, 1)
	own := h.ended(h.ask(1)).Attempt.Replica
	var tasks []string
	for range 100 {
		task := h.ask(1)
		h.read(task, inference.EventID{})
		tasks = append(tasks, task)
	}
	for i, task := range tasks {
		if r := h.ended(task); r.Attempt.Replica != own {
			t.Fatalf("got the replica %s for task %d, want %s", r.Attempt.Replica, i, own)
		}
	}
}

// TestCancelOfATaskThatBeginsAtOnce cancels a task at each call of the store and the feed from
// the commit that creates it on.
func TestCancelOfATaskThatBeginsAtOnce(t *testing.T) {
	t.Parallel()
	cancelAtEachCall(t, 2, 5, func(h *inferring, at *interruption, calls int64) run.Run {
		h.ended(h.ask(1))
		at.left.Store(calls)
		at.all.Store(true)
		r := h.ended(h.ask(3))
		if at.all.Store(false); r.Attempt.Number != 1 || r.Attempt.Replica != "r1" {
			t.Errorf("at call %d: got attempt %d at %q, want the first at r1", calls, r.Attempt.Number, r.Attempt.Replica)
		}
		return r
	})
}
