package run

import (
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// ForRetry returns a new run with the work of r, for a requested retry. It has the same job
// version, parameters, inputs, event, labels, pool and lineage, and the runs that r came after. No job comes
// after it. It is no firing and no replica, and its
// program gets the scheduled time of r. It does not require the success of the job's last run,
// because that run can be r. The caller sets the correlation id, Exec, the trace context and the
// input.
func (r Run) ForRetry() Run {
	again := Run{
		Tenant: r.Tenant, Workspace: r.Workspace, BatchID: r.BatchID, RetryOf: r.TaskID,
		PayloadDigest: r.PayloadDigest, Work: r.Work, Routes: r.Routes, Policy: r.Policy, JobID: r.JobID, JobVersion: r.JobVersion, Parameters: r.Parameters, Labels: r.Labels,
		Inputs: r.Inputs, Event: r.Event, Child: r.Child.Alone(),
		Trigger: r.Trigger, Lineage: r.Lineage, ParentRun: r.ParentRun, Parent: r.Parent, Graph: r.Graph, Constraints: r.Constraints, Actions: r.Actions,
		Priority: r.Priority, Concurrency: r.Concurrency, Override: r.Override,
		Slot: platform.Slot{Pool: r.ownPool()},
	}
	if home, ok := r.Routes.Of(again.Slot.Pool); ok && home.Unfit == "" {
		again = again.at(home)
	} else if ok {
		again.Slot.Pool = r.Slot.Pool
	}
	if r.JobID != "" {
		again.RetriedAt = r.Scheduled()
	}
	if again.Constraints != nil {
		constraints := *again.Constraints
		constraints.RequirePreviousSuccess = false
		again.Constraints = &constraints
	}
	return again
}
