package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// readyTime is how long Check returns the same result. It limits how often probes write.
const readyTime = 2 * time.Second

// Readiness checks whether the store accepts writes. It is safe for concurrent use.
type Readiness struct {
	write func(context.Context) error
	clock clock.Clock

	mu      sync.Mutex
	checked time.Time
	err     error
}

// NewReadiness returns a Readiness. write makes a small change in the store, such as
// RewriteReception.
func NewReadiness(write func(context.Context) error, c clock.Clock) *Readiness {
	return &Readiness{write: write, clock: c}
}

// Check returns nil if the store accepts writes. It reports a result again for readyTime.
// Faults: StoreFull, Unavailable.
func (r *Readiness) Check(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if age := now.Sub(r.checked); !r.checked.IsZero() && age >= 0 && age < readyTime {
		return r.err
	}
	// The end of one request must not become the result of others.
	err := r.write(context.WithoutCancel(ctx))
	switch {
	case err == nil || fault.Is(err, fault.StoreFull) || fault.Is(err, fault.Unavailable):
	default:
		err = fault.Wrap(err, fault.Unavailable, "the store does not accept writes")
	}
	r.checked, r.err = r.clock.Now(), err
	return err
}

// RewriteReception returns a write for NewReadiness: it stores the recorded reception again.
func RewriteReception(store port.ReceptionStore) func(context.Context) error {
	return func(ctx context.Context) error {
		is, err := store.Reception(ctx)
		if err == nil {
			err = store.RecordReception(ctx, is, is)
		}
		if errors.Is(err, port.ErrConflict) { // a canary was recorded meanwhile
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot write to the store: %w", err)
		}
		return nil
	}
}
