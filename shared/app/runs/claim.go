package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// errUnclaimed is the error of a sweep that finds a machine without a record while the
// store may have lost records.
var errUnclaimed = errors.New("a machine has no record, and the records may be lost or restored")

// mayDestroyUnknown returns nil if a machine without a record may be destroyed. It may
// not be in a store that is not claimed: an emptied or restored table has lost the
// records of machines whose workers are active.
func (s *Records) mayDestroyUnknown(ctx context.Context, m port.MachineStatus) error {
	claimed, err := s.store.Claimed(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the claim of the store: %w", err)
	}
	if !claimed {
		s.log.LogAttrs(ctx, slog.LevelError, "a machine without a record is kept, because the store has lost records or was restored",
			about.Machine(m, run.Run{})...)
		return fmt.Errorf("machine %s: %w", m.ID, errUnclaimed)
	}
	return nil
}

// claim claims the store. The caller has found a record of every machine. After a success,
// later calls of the process do nothing.
func (s *Sweeper) claim(ctx context.Context) error {
	if s.claimed.Load() {
		return nil
	}
	claimed, err := s.store.Claimed(ctx)
	if err == nil && !claimed {
		err = s.store.Claim(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot claim the store: %w", err)
	}
	s.claimed.Store(true)
	return nil
}
