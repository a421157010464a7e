// Package flaky has stores that fail when they are told to, for tests of those
// who use one.
//
//	store := flaky.New(sqlite, flaky.Seeded(seed, 0.1), func(err error) { t.Error(err) })
//
// A call fails in one of two ways: it was not made, or it was made and its
// answer was lost. Whoever called cannot tell which, as with a real store over
// a network. The same plan gives the n-th call the same fate each time.
//
// It also watches its callers: what nobody may ask of a store, whatever became
// of the calls before, is reported, and passed on to the store all the same.
package flaky

import (
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Store is another store with failures. It is safe for use by many goroutines.
type Store struct {
	inner   port.Store
	plan    Plan
	witness witness

	mu           sync.Mutex
	calls        int
	lost, unsure int
}

var _ port.Store = (*Store)(nil)

// New puts the plan before a store; a nil plan fails nothing. All who use the
// inner store have to do so through this one, or misuse, which is told of every
// misuse by the goroutine that is guilty of it, is told of some that are none.
func New(inner port.Store, plan Plan, misuse func(error)) *Store {
	return &Store{
		inner: inner, plan: plan,
		witness: witness{tell: misuse, seen: map[run.Ref]run.Run{}},
	}
}

// Failures counts the calls that were not made, and those that were made and
// reported failed.
func (s *Store) Failures() (lost, unsure int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost, s.unsure
}

// call gives the call its fate.
func (s *Store) call(method string, write bool, do func() error) error {
	s.mu.Lock()
	s.calls++
	fate := Applied
	if s.plan != nil {
		fate = s.plan(Call{Number: s.calls, Method: method, Write: write})
	}
	switch fate {
	case Lost:
		s.lost++
	case Unsure:
		s.unsure++
	}
	s.mu.Unlock()
	if fate == Lost {
		return failure(method)
	}
	err := do()
	if fate == Unsure {
		return failure(method)
	}
	return err
}

func failure(method string) error {
	return fault.New(fault.Unavailable, "%s failed because it was told to", method)
}

// Create implements orchestrator.Store.
func (s *Store) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey) (*run.Run, error) {
	s.witness.creates(first, key)
	var existing *run.Run
	err := s.call("Create", true, func() (err error) {
		if existing, err = s.inner.Create(ctx, first, key); err != nil {
			return err
		}
		if existing != nil {
			s.witness.saw(*existing)
		} else {
			s.witness.saw(after(first))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return existing, nil
}

// Commit implements orchestrator.Store.
func (s *Store) Commit(ctx context.Context, writes ...port.Write) error {
	s.witness.commits(writes)
	return s.call("Commit", true, func() error {
		if err := s.inner.Commit(ctx, writes...); err != nil {
			return err
		}
		for _, w := range writes {
			s.witness.saw(after(w))
		}
		return nil
	})
}

func after(w port.Write) run.Run {
	w.Run.Version++
	return w.Run
}

// Beat implements orchestrator.Store.
func (s *Store) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error) {
	return give(s, "Beat", true, func() (run.Heartbeat, error) { return s.inner.Heartbeat(ctx, ref, b) })
}

// NoteReception implements orchestrator.Store.
func (s *Store) RecordReception(ctx context.Context, r port.Reception) error {
	return s.call("NoteReception", true, func() error { return s.inner.RecordReception(ctx, r) })
}

// Mend implements orchestrator.Store.
func (s *Store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	return give(s, "Mend", true, func() (int, error) { return s.inner.Reconcile(ctx, tenant, pool) })
}

// Purge implements orchestrator.Store.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	return give(s, "Purge", true, func() (int, error) { return s.inner.Purge(ctx, now, limit) })
}

// give is call for methods with an answer, of which a failed call has none.
func give[T any](s *Store, method string, write bool, do func() (T, error)) (T, error) {
	var answer, none T
	err := s.call(method, write, func() (err error) {
		answer, err = do()
		return err
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}
