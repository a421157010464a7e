package orchestrator

import (
	"context"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// RetryCall is a request for a new run of the work of one that has ended.
type RetryCall struct {
	Identity       port.Identity
	TaskID         string
	IdempotencyKey string
	CorrelationID  string
}

// Retry accepts a new run with the work and the policy of a task that has ended,
// however it did. existing as for Export. Faults: NotFound as for Task, NotEnded
// while it goes on, IdempotencyMismatch. It needs Executions beside Store.
func (s *Service) Retry(ctx context.Context, call RetryCall) (r run.Run, existing bool, err error) {
	if err := checkKey(call.IdempotencyKey); err != nil {
		return r, false, err
	}
	old, err := s.find(ctx, call.Identity, call.TaskID)
	if err != nil {
		return r, false, err
	}
	if !old.State.Terminal() {
		return r, false, fault.New(fault.NotEnded, "the task is %s; only one that has ended is tried again on request", old.State)
	}
	return s.create(ctx, run.Run{
		Tenant: old.Tenant, Workspace: old.Workspace, BatchID: old.BatchID, RetryOf: old.TaskID,
		CorrelationID: call.CorrelationID, Work: old.Work, Policy: old.Policy, Constrained: old.Constrained,
	}, call.IdempotencyKey, "retry of "+old.TaskID)
}
