// Package api converts between the wire types of package contract and the domain types, in both
// directions. Requests become submissions and reports. Runs become the status, the task and the
// events that clients read. Assignments become the environment of a worker.
//
// A file has both directions of one thing: hook.go the bodies of the calls of actions and hooks,
// webhook.go those of webhooks, event.go the events.
//
// The package is pure. It validates requests and names the invalid field. It never exposes
// tokens, machine environments or secret values to clients.
package api

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Status returns the response of GET /status/{task_id}.
func Status(v runs.View) contract.Status {
	r := v.Run
	status := contract.Status{
		TaskID: r.TaskID, BatchID: batchOf(r), Labels: r.Labels, Status: statusOf(r), Skipped: r.Skipped,
		PI: r.Work.PI, Format: r.Work.Format, Options: r.Work.Options,
		State: string(r.State), Attempt: r.Attempt.Number,
		Pool: r.Slot.Pool, FellBack: fellBack(detour(r)), TriggeredBy: jobRun(r.TriggeredBy()), Triggered: triggered(r), UntakenActions: untakenActions(r), FailedActions: failedActions(r),
		QueuePosition: position(v), Progress: progress(v), MachineID: r.Attempt.Machine.ID,
		CreatedAt: r.CreatedAt, UpdatedAt: r.EnteredAt, StartedAt: startedAt(r),
		CompletedAt: r.EndedAt, ExpiresAt: r.ExpiresAt,
	}
	if status.WorkerID = r.Attempt.WorkerID; v.Heartbeat != nil {
		status.LastHeartbeatAt = v.Heartbeat.At
	}
	if r.State.Terminal() && r.Attempt.Report != nil {
		status.Metrics = contract.ExportMetrics(r.Attempt.Report.Metrics)
	}
	if status.Status == contract.StatusSuccess && r.Output != nil {
		status.OutputKey, status.OutputFileName = r.Output.Key, r.Output.FileName
		status.OutputFileSize, status.OutputExpiresAt = &r.Output.Size, r.Output.ExpiresAt
	}
	if status.Status == contract.StatusError {
		status.Error = "the run ended as " + string(r.State)
		if r.Fault != nil {
			status.Error = r.Fault.Message
			status.ErrorCode, status.ErrorCategory = string(r.Fault.Code), string(r.Fault.Category)
		} else if r.Skipped {
			status.Error, status.ErrorCode = done(r), contract.CodeSkipped
		}
	}
	return status
}

// statusOf returns the status of the export contract for the state of a run. A skipped run is
// an error, because its work was not done (EC-6.4).
func statusOf(r run.Run) string {
	switch {
	case !r.State.Terminal():
		return contract.StatusProcessing
	case r.State == run.Completed && !r.Skipped:
		return contract.StatusSuccess
	}
	return contract.StatusError
}

func position(v runs.View) *int {
	if v.QueuePosition < 0 {
		return nil
	}
	return &v.QueuePosition
}

// done describes the end of a completed run. For a skipped run it says why.
func done(r run.Run) string {
	switch {
	case r.Missed != nil:
		return r.Missed.String()
	case !r.Skipped:
		return "done"
	case r.Overflowed != nil:
		return "skipped: " + r.Overflowed.String()
	case len(r.Violations) == 0:
		return "skipped"
	}
	texts := make([]string, len(r.Violations))
	for i, violation := range r.Violations {
		texts[i] = violation.String()
	}
	return "skipped: " + strings.Join(texts, "; ")
}

// progress returns the progress of a run; nil if the run ended without success.
func progress(v runs.View) *contract.Progress {
	switch {
	case v.Run.State == run.Completed:
		p := &contract.Progress{Message: done(v.Run)}
		if !v.Run.Skipped {
			p.Percent = new(100)
		}
		return p
	case v.Run.State.Terminal():
		return nil
	}
	p := &contract.Progress{Message: message(v)}
	if f := v.Run.Fan; f != nil && v.Run.State == run.Running && v.Run.Cancel == nil {
		if p.Message = f.Counts().String(); f.Total > 0 {
			p.Percent = new(f.Counts().Ended() * 100 / f.Total)
		}
	}
	if v.Heartbeat != nil && v.Run.Attempt.Outcome == "" {
		p.Percent = v.Heartbeat.Progress
		if v.Heartbeat.Message != "" {
			p.Message = v.Heartbeat.Message
		}
	}
	return p
}

func message(v runs.View) string {
	r := v.Run
	cancelled := ""
	switch {
	case r.Cancel != nil && !r.Succeeded():
		cancelled = "; cancel requested"
	case r.Evicted() && r.State == run.Running:
		cancelled = "; the worker is asked to end, because the pool drains"
	}
	return stateMessage(r, v.QueuePosition) + cancelled
}

// waiting describes a position in the queue. It returns otherwise for a run without a position.
func waiting(what string, position int, otherwise string) string {
	switch {
	case position == 0:
		return what + ", next in the queue"
	case position >= limit.QueuePositions:
		return fmt.Sprintf("%s, %d or more runs are ahead in the queue", what, limit.QueuePositions)
	case position > 0:
		return fmt.Sprintf("%s, position %d in the queue", what, position)
	}
	return otherwise
}

func stateMessage(r run.Run, position int) string {
	switch r.State {
	case run.PreRun:
		return "scheduled for " + r.ScheduledAt.Format(time.RFC3339)
	case run.Pending:
		if r.AwaitsKey() {
			what := "waiting for a slot of key " + r.Concurrency.Key
			return waiting(what, position, what)
		}
		return waiting("waiting for a machine", position, "waiting for admission")
	case run.ConditionPending, run.ConditionRunning:
		return "checking constraints"
	case run.ActionPending, run.ActionRunning:
		if r.AwaitsJobSlot() {
			what := "waiting for a slot of job " + r.JobID
			return waiting(what, position, what)
		}
		if a := r.Acting; a != nil && a.Waits && !a.NotBefore.IsZero() {
			return "a constraint is violated; checking again at " + a.NotBefore.Format(time.RFC3339)
		}
		return "running the action of a violated constraint"
	case run.ContainerCreating:
		const limited = "waiting until the platform permits the start of a machine"
		if r.Queued() {
			return waiting(limited, position, limited)
		}
		if r.Attempt.Throttles > 0 || r.Spent.Starts > 0 {
			return fmt.Sprintf("starting a machine for attempt %d, after a failed try", r.Attempt.Number)
		}
		return fmt.Sprintf("starting a machine for attempt %d", r.Attempt.Number)
	case run.Running:
		return fmt.Sprintf("attempt %d is running", r.Attempt.Number)
	case run.Terminating:
		if r.Attempt.Outcome == run.OutcomeSucceeded {
			return "the worker has finished; its output is being verified and copied"
		}
		return cmp.Or(leavesMessage(r), fmt.Sprintf("attempt %d has ended and is being cleaned up", r.Attempt.Number))
	case run.Retrying:
		return cmp.Or(leavesMessage(r), fmt.Sprintf("attempt %d failed; the next one starts at %s", r.Attempt.Number, r.RetryAt.Format(time.RFC3339)))
	}
	return "ended"
}

// leavesMessage describes the current fallback of a run; empty without one.
func leavesMessage(r run.Run) string {
	if !r.FallsBack() {
		return ""
	}
	what := "no machine was started for"
	if !r.HasExecution() {
		what = "no replica served"
	}
	return fmt.Sprintf("%s attempt %d; the next one is in pool %s", what, r.Attempt.Number, r.NextPool())
}
