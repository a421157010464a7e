package orchestrator_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// writes counts what is written until the first token.
type writes struct {
	mu                      sync.Mutex
	commits, synced, writes int
	first                   string // the counts at the first token
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
	port.Feed
	*writes
}

func (f countedFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	f.mu.Lock()
	if f.writes.writes++; !b.Relaxed {
		f.synced++
	}
	if f.first == "" && bytes.Contains(b.Records[0].Data, []byte(`"tokens"`)) {
		f.first = fmt.Sprintf("%d commits, %d appends, %d of them synced", f.commits, f.writes.writes, f.synced)
	}
	f.mu.Unlock()
	return f.Feed.Append(ctx, stream, b)
}

// TestFirstTokenNeedsThreeCommits: the task is stored, gets its slot and is taken by the
// dispatcher in a commit each. The events up to the first token are appended without an
// fsync; the end of the stream has one, and so have the metrics behind the first token.
func TestFirstTokenNeedsThreeCommits(t *testing.T) {
	t.Parallel()
	counted := &writes{}
	h := newInferring(t, 1, 1, func(h *inferring) {
		h.store, h.feed = countedStore{h.store, counted}, countedFeed{h.feed, counted}
	})
	task := h.ask(5)
	h.read(task, inference.EventID{})
	h.ended(task)
	counted.mu.Lock()
	defer counted.mu.Unlock()
	if want := "3 commits, 2 appends, 0 of them synced"; counted.first != want {
		t.Errorf("got %s up to the first token, want %s", counted.first, want)
	}
	if counted.synced != 2 {
		t.Errorf("got %d synced appends, want those of the metrics and of the end", counted.synced)
	}
}
