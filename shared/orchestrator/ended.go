package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// ExecutionEnded looks at a run whose execution is said to have ended: one that
// ended without its run is begun anew at once, where the sweep would wait for
// the time by which it should have acted. It may be told the same end many
// times; that of an execution which was replaced, or of a run which has ended or
// is no more, is nothing. Unavailable where the execution is still shown as
// running. It needs Runner and Outputs too.
func (s *Service) ExecutionEnded(ctx context.Context, ref run.Ref, name string) error {
	r, err := s.ports.Store.Load(ctx, ref)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot load the run: %w", err)
	}
	if r.State.Terminal() || name != run.ExecutionName(ref, r.Execution.Start) {
		return nil
	}
	execution, err := s.ports.Executions.Describe(ctx, name)
	switch {
	case errors.Is(err, port.ErrNotFound), err == nil && execution.Status == port.ExecutionRunning:
		return fault.New(fault.Unavailable, "the end of the execution %s is not seen yet", name)
	case err != nil:
		return fmt.Errorf("cannot ask about the execution: %w", err)
	}
	return s.replaceExecution(ctx, r, execution)
}
