package inferences_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// heldCancel is a store whose first commit of a cancel request waits.
type heldCancel struct {
	port.Store
	once             sync.Once
	reached, release chan struct{}
}

// Commit implements port.Store.
func (s *heldCancel) Commit(ctx context.Context, writes ...port.Write) error {
	for _, w := range writes {
		if w.Run.Cancel != nil {
			s.once.Do(func() { close(s.reached); <-s.release })
		}
	}
	return s.Store.Commit(ctx, writes...)
}

// TestCallJoinsWhileTheTaskIsCancelled calls with the key of a task whose last caller has
// disconnected, before the cancel is committed. The call gets a new task.
func TestCallJoinsWhileTheTaskIsCancelled(t *testing.T) {
	t.Parallel()
	held := &heldCancel{reached: make(chan struct{}), release: make(chan struct{})}
	h := newInferring(t, 1, 1, func(h *inferring) {
		held.Store = h.store
		h.store = held
	})
	in := inferences.NewTask{
		Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count"}, MaxTokens: 3,
		IdempotencyKey: "k", Digest: "d",
	}
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	var calls sync.WaitGroup
	ctx, leave := context.WithCancel(t.Context())
	again := in
	var first string
	calls.Go(func() {
		_ = h.tasks.Call(ctx, &in, func(a inferences.Accepted) error { first = a.Run.TaskID; return nil }, func([]inference.Event) error { return nil })
	})
	h.engines["r1"].WaitRunning(1)
	leave()
	<-held.reached
	var second string
	var events []inference.Event
	var err error
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		err = h.tasks.Call(t.Context(), &again, func(a inferences.Accepted) error { second = a.Run.TaskID; return nil }, func(found []inference.Event) error {
			events = append(events, found...)
			return nil
		})
	}()
	close(held.release)
	<-joined
	calls.Wait()
	if err != nil || second == first || len(events) == 0 || events[len(events)-1].Name != inference.NameEnd {
		t.Errorf("got %v with the events %q of task %s, want the answer of another task than %s", err, names(events), second, first)
	}
	if r := h.ended(first); r.State != run.Cancelled {
		t.Errorf("got the task %s of the caller that has gone, want it cancelled", r.State)
	}
}

// TestRepeatedTaskIsTheSame: a key returns the task of its first use, also if its model was
// retired since.
func TestRepeatedTaskIsTheSame(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	keyed := func(in *inferences.NewTask) { in.IdempotencyKey, in.Digest = "k", "d" }
	first := h.ask(1, keyed)
	_, _, err := h.models.Create(t.Context(), client, "mock", catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: []port.Workload{port.WorkloadCompletion},
	}, false)
	h.ok(err)
	_, err = h.models.SetState(t.Context(), client, "mock", catalog.Retired, change.Precondition{})
	h.ok(err)
	if again := h.ask(1, keyed); again != first {
		t.Errorf("got task %s, want %s", again, first)
	}
	in := inferences.NewTask{Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "a"}}
	if _, err := h.tasks.Create(t.Context(), in); !fault.Is(err, fault.PoolUnavailable) {
		t.Errorf("got %v, want PoolUnavailable", err)
	}
	in.IdempotencyKey, in.Digest = "k", "other"
	if _, err := h.tasks.Create(t.Context(), in); !fault.Is(err, fault.IdempotencyMismatch) {
		t.Errorf("got %v, want IdempotencyMismatch", err)
	}
}
