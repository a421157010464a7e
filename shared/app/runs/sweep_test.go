package runs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// sweepStore is a store that counts the reads of a sweep.
type sweepStore struct {
	port.Store
	loads int
	due   func(ctx context.Context)
	// stalePages is the number of pages with already deleted outputs to return first.
	stalePages int
}

// OutputsDue implements port.Store.
func (w *sweepStore) OutputsDue(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	if w.stalePages > 0 {
		w.stalePages--
		return make([]run.Ref, limit), "stale", nil
	}
	if after == "stale" {
		after = ""
	}
	return w.Store.OutputsDue(ctx, now, after, limit)
}

// Load implements port.Store.
func (w *sweepStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	w.loads++
	return w.Store.Load(ctx, ref)
}

// Due implements port.Store.
func (w *sweepStore) Due(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	if w.due != nil {
		w.due(ctx)
	}
	return w.Store.Due(ctx, now, after, limit)
}

// TestSweepReadsNoRunWithARunningMachine checks that a sweep loads no run without a
// change, so that ten thousand machines fit in its minute.
func TestSweepReadsNoRunWithARunningMachine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.post()
	h.post()
	lost := h.post()
	store := &sweepStore{Store: h.store}
	service := h.system(wiring{store: store})
	h.ok(service.Sweep(t.Context(), 0))
	if store.loads != 0 {
		t.Errorf("got %d runs read one by one, want 0", store.loads)
	}
	h.runner.last().exit(1)
	h.ok(service.Sweep(t.Context(), 0))
	h.wantState(lost, run.Terminating)
}

// hangingRunner is a platform that does not answer.
type hangingRunner struct{ port.Runner }

// List implements port.Runner.
func (hangingRunner) List(ctx context.Context, _ func(port.MachineStatus) bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestSweepContinuesPastAHangingPlatform checks that overdue runs are read
// although the platform does not answer.
func TestSweepContinuesPastAHangingPlatform(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		requested := false
		store := &sweepStore{Store: h.store, due: func(ctx context.Context) { requested = ctx.Err() == nil }}
		service := h.system(wiring{store: store, runner: hangingRunner{h.runner}, clock: systemclock.System{}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := service.Sweep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || !requested {
			t.Errorf("got error %v and due runs read in time %t, want %v and true", err, requested, context.DeadlineExceeded)
		}
	})
}

// bucket is a port.Outputs that is safe for concurrent use.
type bucket struct {
	*outputs
	mu sync.Mutex
	// deleting runs before each deletion, with the deletion's number; its error is
	// returned.
	deleting func(ctx context.Context, nth int) error
	begun    int
}

// Delete implements port.Outputs.
func (s *bucket) Delete(ctx context.Context, on port.Bucket, key string) error {
	s.mu.Lock()
	s.begun++
	nth := s.begun
	s.mu.Unlock()
	if err := s.deleting(ctx, nth); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outputs.Delete(ctx, on, key)
}

// expire creates expired outputs and returns a service that deletes atOnce of them
// concurrently.
func (h *fixture) expire(many, atOnce int, deleting func(ctx context.Context, nth int) error) system {
	h.Helper()
	for range many {
		h.completed()
	}
	h.clock.to(h.clock.now.Add(25 * time.Hour))
	config := h.config
	config.SweepWorkers = atOnce
	return h.system(wiring{store: h.store.Store, outputs: &bucket{outputs: h.outputs, deleting: deleting}, config: &config})
}

// wantOutputs fails the test if the bucket or the records have another number of
// outputs.
func (h *fixture) wantOutputs(want int) {
	h.Helper()
	due, _, err := h.store.OutputsDue(h.Context(), h.clock.now, "", 100)
	h.ok(err)
	if objects := len(h.outputs.buckets[port.Accepted]); objects != want || len(due) != want {
		h.Errorf("got %d outputs and %d records with an output, want %d of each", objects, len(due), want)
	}
}

func TestSweepDeletesOutputsConcurrently(t *testing.T) {
	t.Parallel()
	h := setup(t)
	three := make(chan struct{})
	service := h.expire(7, 3, func(_ context.Context, nth int) error {
		if nth == 3 {
			close(three)
		}
		select {
		case <-three:
		case <-time.After(time.Minute): // fails the test without a third deletion
			return errors.New("no concurrent deletion")
		}
		if nth == 2 {
			return errors.New("the second is lost")
		}
		return nil
	})
	if err := service.Sweep(t.Context(), 0); err == nil || strings.Count(err.Error(), "lost") != 1 {
		t.Errorf("got %v, want one lost deletion", err)
	}
	if due, _, err := h.store.OutputsDue(t.Context(), h.clock.now, "", 100); err != nil || len(due) != 0 {
		t.Errorf("got %d due deletions, %v; want the failed one delayed", len(due), err)
	}
	h.clock.to(h.clock.now.Add(time.Minute))
	h.wantOutputs(1)
	h.ok(service.Sweep(t.Context(), 0))
	h.wantOutputs(0)
}

func TestSweepStopsDeletingAtItsDeadline(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ctx, end := context.WithCancel(t.Context())
	service := h.expire(6, 2, func(_ context.Context, nth int) error {
		if nth == 2 {
			end()
		}
		if nth >= 2 { // blocks both workers until the context ends
			<-ctx.Done()
		}
		return nil
	})
	if err := service.Sweep(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if due, _, err := h.store.OutputsDue(t.Context(), h.clock.now, "", 100); err != nil || len(due) < 3 {
		t.Errorf("got %d records with an output (%v), want at least 3", len(due), err)
	}
	h.ok(service.Sweep(t.Context(), 0))
	h.wantOutputs(0)
}

// TestSweepDeletesEveryExpiredOutput sweeps more expired outputs than one batch.
func TestSweepDeletesEveryExpiredOutput(t *testing.T) {
	t.Parallel()
	h := setup(t)
	store := &sweepStore{Store: h.store, stalePages: 2}
	service := h.system(wiring{store: store})
	h.completed()
	h.clock.to(h.clock.now.Add(25 * time.Hour))
	h.ok(service.Sweep(t.Context(), 0))
	h.wantOutputs(0)
}
