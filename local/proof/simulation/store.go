package simulation

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// slowest is the longest that a slow commit takes.
const slowest = 20 * time.Second

// crashingStore is a store whose process can crash before and after a commit.
type crashingStore struct {
	port.Store
	w *world
}

// Create implements port.Store.
func (s *crashingStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey) (*run.Run, error) {
	s.w.maybeCrash()
	existing, err := s.Store.Create(ctx, first, key)
	s.w.maybeCrash()
	return existing, err
}

// Commit implements port.Store.
func (s *crashingStore) Commit(ctx context.Context, writes ...port.Write) error {
	s.w.maybeCrash()
	if s.w.chance(s.w.plan.slowCommits) {
		s.w.time.sleep(s.w.upTo(slowest))
	}
	err := s.Store.Commit(ctx, writes...)
	s.w.maybeCrash()
	return err
}

// observedStore notes which records may have changed.
type observedStore struct {
	port.Store
	w *world
}

// Create implements port.Store.
func (s observedStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey) (*run.Run, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	existing, err := s.Store.Create(ctx, first, key)
	s.w.records.touch(first.Run.Ref())
	return existing, err
}

// Commit implements port.Store.
func (s observedStore) Commit(ctx context.Context, writes ...port.Write) error {
	if err := interrupted(ctx); err != nil {
		return err
	}
	err := s.Store.Commit(ctx, writes...)
	for _, each := range writes {
		s.w.records.touch(each.Run.Ref())
	}
	return err
}

// crashingRunner is a runner whose caller can crash before it answers.
type crashingRunner struct {
	*machines
	w *world
}

// Launch implements port.Runner.
func (r crashingRunner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.w.maybeCrash()
	m, err := r.machines.Launch(ctx, spec)
	r.w.maybeCrash()
	return m, err
}
