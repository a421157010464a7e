package inferences_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// heldStore is a store in which a commit that ends a task waits until held is closed.
type heldStore struct {
	port.Store

	held *atomic.Pointer[chan struct{}]
}

func (s heldStore) Commit(ctx context.Context, writes ...port.Write) error {
	if held := s.held.Load(); held != nil && writes[0].Run.State.Terminal() {
		<-*held
	}
	return s.Store.Commit(ctx, writes...)
}

// TestEndFollowsItsSettlement delays the commit that settles a task whose stream has ended. The
// reader gets the end after that commit, or after 5 seconds without it.
func TestEndFollowsItsSettlement(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		commits bool
		after   time.Duration
	}{"committed": {true, 0}, "not committed": {false, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				held := make(chan struct{})
				gate := &atomic.Pointer[chan struct{}]{}
				gate.Store(&held)
				h := newInferring(t, 1, 1, func(h *inferring) { h.store = heldStore{h.store, gate} })
				task := h.ask(3)
				var tokens, ended atomic.Int32
				go func() {
					err := h.tasks.Follow(t.Context(), client, task, inference.EventID{}, func(run.Run) error { return nil }, func(events []inference.Event) error {
						for _, e := range events {
							switch e.Name {
							case inference.NameToken:
								tokens.Add(1)
							case inference.NameEnd:
								ended.Add(1)
							}
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				if tokens.Load() != 3 || ended.Load() != 0 {
					t.Errorf("got %d tokens and %d ends before the settlement, want 3 and 0", tokens.Load(), ended.Load())
				}
				if row.commits {
					gate.Store(nil)
					close(held)
				}
				if got := h.steps(10*time.Second, func() bool { return ended.Load() == 1 }); got != row.after {
					t.Errorf("got the end after %s, want %s", got, row.after)
				}
				if !row.commits {
					gate.Store(nil)
					close(held)
				}
				synctest.Wait()
			})
		})
	}
}
