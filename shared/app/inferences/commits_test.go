package inferences_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// writes counts the commits and the appends with an fsync.
type writes struct {
	mu              sync.Mutex
	commits, synced int
	first           string // the counts at the first token
}

func (w *writes) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

type countedStore struct {
	port.Store
	*writes
}

func (s countedStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	s.count(&s.commits)
	return s.Store.Create(ctx, first, key, with...)
}

func (s countedStore) Commit(ctx context.Context, of ...port.Write) error {
	s.count(&s.commits)
	return s.Store.Commit(ctx, of...)
}

type countedFeed struct {
	port.AnswerFeed
	*writes
}

func (f countedFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	f.mu.Lock()
	if !b.Relaxed {
		f.synced++
	}
	if f.first == "" && bytes.Contains(b.Records[len(b.Records)-1].Data, []byte(`"tokens"`)) {
		f.first = fmt.Sprintf("%d commits, %d appends with an fsync", f.commits, f.synced)
	}
	f.mu.Unlock()
	return f.AnswerFeed.Append(ctx, stream, b)
}

// TestFirstTokenNeedsOneCommit counts the commits that store a task, acquire its slot and
// record its dispatcher: one if a replica was ready a moment ago, otherwise three. The events
// up to the first token are appended without an fsync. The metrics after it and the end of the
// stream are appended with one.
func TestFirstTokenNeedsOneCommit(t *testing.T) {
	t.Parallel()
	counted := &writes{}
	h := newInferring(t, 1, 2, func(h *inferring) {
		h.store, h.feed = countedStore{h.store, counted}, countedFeed{h.feed, counted}
	})
	for _, next := range []struct {
		after time.Duration
		want  string
	}{
		{0, "3 commits, 0 appends with an fsync"},
		{time.Second, "1 commits, 0 appends with an fsync"},
		{time.Minute, "3 commits, 0 appends with an fsync"},
	} {
		h.clock.Advance(next.after)
		counted.mu.Lock()
		counted.commits, counted.synced, counted.first = 0, 0, ""
		counted.mu.Unlock()
		task := h.ask(5)
		h.read(task, inference.EventID{})
		h.ended(task)
		counted.mu.Lock()
		if counted.first != next.want {
			t.Errorf("got %s up to the first token %s after another task, want %s", counted.first, next.after, next.want)
		}
		if counted.synced != 2 {
			t.Errorf("got %d synced appends, want those of the metrics and of the end", counted.synced)
		}
		counted.mu.Unlock()
	}
}
