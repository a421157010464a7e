package runs_test

import (
	"context"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// A run that leaves the filter before the commit of its cancel request is not cancelled.
func TestBulkCancelFollowsItsFilter(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		states []run.State
		want   int
	}{
		"the state that it leaves":     {[]run.State{run.ContainerCreating}, 0},
		"the state that it enters too": {[]run.State{run.ContainerCreating, run.Running}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			var task string
			h.runner.during = func(m *machine) error {
				racing := &racingStore{first: func() { h.ok(h.worker(m).started(false)) }}
				results, next, err := h.raceWith(racing).CancelAll(t.Context(), runs.Bulk{
					Identity: client, Filter: runs.Filter{States: row.states}, Limit: 10,
				})
				if h.ok(err); racing.first != nil || len(results) != row.want || next != "" {
					t.Errorf("got %d results and next %q, want %d after a lost race", len(results), next, row.want)
				}
				return nil
			}
			task = h.post()
			if r := h.record(task); (r.Cancel != nil) != (row.want == 1) {
				t.Errorf("got %s with cancel request %+v, want %d requests", r.State, r.Cancel, row.want)
			}
		})
	}
}

// slowStore is a store whose commits take a second.
type slowStore struct {
	port.Store
	clock *clock
}

// Commit implements port.Store.
func (s *slowStore) Commit(ctx context.Context, writes ...port.Write) error {
	s.clock.now = s.clock.now.Add(time.Second)
	return s.Store.Commit(ctx, writes...)
}

// TestBulkPageEndsInTime lets each cancel take a second: a page ends before the time
// limit of a function, and the next one continues.
func TestBulkPageEndsInTime(t *testing.T) {
	t.Parallel()
	h := setup(t)
	const all = 45
	for range all {
		h.advance(time.Second)
		h.accept()
	}
	slow := h.system(wiring{store: &slowStore{h.store, h.clock}})
	seen, cursor := 0, ""
	for pages := 1; ; pages++ {
		began := h.clock.now
		results, next, err := slow.CancelAll(t.Context(), runs.Bulk{
			Identity: client, Filter: runs.Filter{Kind: spec.KindExport}, Limit: 100, Cursor: cursor,
		})
		h.ok(err)
		if took := h.clock.now.Sub(began); took > 25*time.Second {
			t.Errorf("got a page that takes %s, want less than the 29 s of API Gateway", took)
		}
		if seen += len(results); next == "" {
			if seen != all || pages < 3 {
				t.Errorf("got %d runs in %d pages, want %d in at least 3", seen, pages, all)
			}
			return
		}
		cursor = next
	}
}
