package fake

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store wraps another Store. It adds failures and checks its callers. It is safe for concurrent
// use.
type Store struct {
	calls
	inner   port.Store
	witness witness
}

var _ port.Store = (*Store)(nil)

// NewStore wraps inner. misuse is called for every call that the port does not allow. All users
// of inner must share the wrapper, because otherwise misuse is also called for correct calls.
func NewStore(inner port.Store, plan Plan, misuse func(error)) *Store {
	return &Store{
		inner: inner, calls: calls{plan: plan},
		witness: witness{report: misuse, seen: map[run.Ref]run.Run{}},
	}
}

// Create implements port.Store.
func (s *Store) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	s.witness.creates(first, key)
	if len(with) > 0 {
		s.witness.commits(with)
	}
	return result(context.Background(), &s.calls, "Create", "", true, func() (existing *run.Run, err error) {
		if existing, err = s.inner.Create(ctx, first, key, with...); err != nil {
			return nil, err
		}
		if existing != nil {
			s.witness.saw(*existing)
		} else {
			s.witness.saw(after(first))
			for _, w := range with {
				s.witness.saw(after(w))
			}
		}
		return existing, nil
	})
}

// Commit implements port.Store.
func (s *Store) Commit(ctx context.Context, writes ...port.Write) error {
	s.witness.commits(writes)
	return s.call(context.Background(), "Commit", "", true, func() error {
		if err := s.inner.Commit(ctx, writes...); err != nil {
			return err
		}
		for _, w := range writes {
			s.witness.saw(after(w))
		}
		return nil
	})
}

// after returns the record that the store has after the write.
func after(w port.Write) run.Run {
	w.Run.Version++
	return w.Run
}

// Heartbeat implements port.Store.
func (s *Store) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error) {
	return ask(s, "Heartbeat", true, func() (run.Heartbeat, error) { return s.inner.Heartbeat(ctx, ref, b) })
}

// RecordReception implements port.Store.
func (s *Store) RecordReception(ctx context.Context, before, after port.Reception) error {
	return s.call(context.Background(), "RecordReception", "", true, func() error { return s.inner.RecordReception(ctx, before, after) })
}

// Reconcile implements port.Store.
func (s *Store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	return ask(s, "Reconcile", true, func() (int, error) { return s.inner.Reconcile(ctx, tenant, pool) })
}

// Purge implements port.Store.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	return ask(s, "Purge", true, func() (int, error) { return s.inner.Purge(ctx, now, limit) })
}

// SetStartLimiter implements port.Store.
func (s *Store) SetStartLimiter(ctx context.Context, g fleet.StartLimiter) error {
	return s.call(context.Background(), "SetStartLimiter", "", true, func() error { return s.inner.SetStartLimiter(ctx, g) })
}

// Claim implements port.Store.
func (s *Store) Claim(ctx context.Context) error {
	return s.call(context.Background(), "Claim", "", true, func() error { return s.inner.Claim(ctx) })
}

// ask is result without a context, because the inner store checks the context.
func ask[T any](s *Store, method string, write bool, do func() (T, error)) (T, error) {
	return result(context.Background(), &s.calls, method, "", write, do)
}
