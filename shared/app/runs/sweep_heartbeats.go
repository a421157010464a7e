package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// sweepHeartbeats evaluates the runs whose heartbeats are not forwarded and whose heartbeat
// limit has passed. One canary serves a whole sweep.
func (s *Sweeper) sweepHeartbeats(ctx context.Context) error {
	var once sync.Once
	var reception run.Reception
	return s.parts.EachRef(ctx, "heartbeats",
		func(after string) ([]run.Ref, string, error) {
			refs, next, err := s.store.HeartbeatsDue(ctx, s.now(), after, sweepPage)
			if err != nil {
				err = fmt.Errorf("cannot read the overdue heartbeats: %w", err)
			}
			return refs, next, err
		},
		func(ctx context.Context, ref run.Ref) error {
			r, err := s.store.Load(ctx, ref)
			if err == nil {
				_, err = s.applyTo(ctx, r, func(now run.Run) run.Fact {
					return run.HeartbeatsChecked{Contact: s.reception.Contact(ctx, now, func() run.Reception {
						once.Do(func() { reception = s.reception.Evaluate(ctx, now) })
						return reception
					})}
				})
			}
			if err != nil && !errors.Is(err, port.ErrNotFound) {
				return fmt.Errorf("cannot check the heartbeats of run %s: %w", ref.ID, err)
			}
			return nil
		})
}

// forwardingSuspended reports whether the heartbeats of the attempt that enters a step are not
// forwarded. An attempt keeps the result that it got before its machine was created.
func (s *Lifecycle) forwardingSuspended(ctx context.Context, step run.Step) bool {
	if step != run.StepContainerCreating || s.forwardLimit == nil {
		return false
	}
	if *s.forwardLimit == 0 {
		return true
	}
	recorded, err := s.store.Reception(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read whether heartbeats are forwarded; they are", "error", err.Error())
	}
	return recorded.Crowded
}
