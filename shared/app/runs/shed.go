package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/crew"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Shed deletes the objects of ended runs and purges their records before their retention is
// over. It keeps runs that ended at the given time or later, and runs with pending effects.
// shed is the number of the other runs; the sweep repeats failed deletions.
func (s *Sweeper) Shed(ctx context.Context, refs []run.Ref, before time.Time) (shed int, err error) {
	var failed crew.Failures
	for _, ref := range refs {
		forgotten, err := s.shed(ctx, ref, before)
		if err != nil {
			failed.Add(fmt.Errorf("run %s: %w", ref.ID, err))
		} else if forgotten {
			shed++
		}
	}
	_, err = s.store.Purge(ctx, s.now(), purgeBatch)
	return shed, errors.Join(failed.Join(ctx), err)
}

func (s *Sweeper) shed(ctx context.Context, ref run.Ref, before time.Time) (bool, error) {
	r, err := s.store.Load(ctx, ref)
	if errors.Is(err, port.ErrNotFound) {
		return false, nil
	}
	if err != nil || r.EndedAt.IsZero() || !r.EndedAt.Before(before) {
		return false, err
	}
	if r, err = s.applyTo(ctx, r, constantFact(run.Shed{})); err != nil || !r.Expired(s.now()) {
		return false, err
	}
	if !r.BytesLeft() {
		return true, nil
	}
	return true, s.orDelay(ctx, ref, s.outputs.deleteExpired(ctx, ref), run.DeletionFailed{})
}
