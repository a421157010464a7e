package orchestrator

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Cancel wishes for the end of a task. It is final and idempotent, and finds
// the run wherever it is; what it returns tells how the run then stands, which
// for a run that had ended is how it ended. NotFound as for Task. It needs
// Executions beside Store.
func (s *Service) Cancel(ctx context.Context, who port.Identity, taskID, reason string) (run.Run, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return run.Run{}, err
	}
	r, err = s.applyTo(ctx, r, is(run.CancelRequested{By: who.Subject, Reason: Cut(reason, messageLimit)}))
	if err != nil {
		return run.Run{}, fmt.Errorf("cannot commit the cancel: %w", err)
	}
	return r, nil
}
