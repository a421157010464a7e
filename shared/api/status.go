// Package api maps between the wire types of package contract and the domain, in
// both directions: requests become submissions and reports, runs become the status,
// the task and the events that clients read, assignments become the environment of
// a worker.
//
// It is pure. It checks what a request asks for and names the field of a problem.
// Tokens, environments and machine images of a record are never shown to clients.
package api

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Status is the answer of GET /status/{task_id}.
func Status(v orchestrator.View) contract.Status {
	r := v.Run
	status := contract.Status{
		TaskID: r.TaskID, BatchID: r.BatchID, Status: statusOf(r),
		PI: r.Work.PI, Format: r.Work.Format, Options: r.Work.Options,
		State: string(r.State), Attempt: r.Attempt.Number,
		QueuePosition: position(v), Progress: progress(v), MachineID: r.Attempt.MachineID,
		CreatedAt: r.CreatedAt, UpdatedAt: r.EnteredAt, StartedAt: r.Attempt.StartedAt,
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
		}
	}
	return status
}

// statusOf returns the state in the export contract's three words.
func statusOf(r run.Run) string {
	switch {
	case !r.State.Terminal():
		return contract.StatusProcessing
	case r.State == run.Completed:
		return contract.StatusSuccess
	}
	return contract.StatusError
}

func position(v orchestrator.View) *int {
	if v.QueuePosition < 0 {
		return nil
	}
	return &v.QueuePosition
}

// progress says what is going on. An end needs no progress but a success, which
// is all of it.
func progress(v orchestrator.View) *contract.Progress {
	switch {
	case v.Run.State == run.Completed:
		all := 100
		return &contract.Progress{Percent: &all, Message: "done"}
	case v.Run.State.Terminal():
		return nil
	}
	told := &contract.Progress{Message: sentence(v)}
	if v.Heartbeat != nil && v.Run.Attempt.Outcome == "" {
		told.Percent = v.Heartbeat.Progress
		if v.Heartbeat.Message != "" {
			told.Message = v.Heartbeat.Message
		}
	}
	return told
}

func sentence(v orchestrator.View) string {
	r := v.Run
	cancelled := ""
	if r.Cancel != nil {
		cancelled = "; a cancel is wished"
	}
	return stateSentence(r, v.QueuePosition) + cancelled
}

func stateSentence(r run.Run, position int) string {
	switch r.State {
	case run.PreRun:
		return "waits for its time, " + r.ScheduledAt.Format(time.RFC3339)
	case run.Pending:
		switch {
		case position == 0:
			return "waits for a machine, the first in line"
		case position > 0:
			return fmt.Sprintf("waits for a machine, %d before it in line", position)
		}
		return "is about to be admitted"
	case run.ConditionPending, run.ConditionRunning:
		return "has its constraints checked"
	case run.ActionPending, run.ActionRunning:
		return "acts on a violated constraint"
	case run.ContainerCreating:
		if r.Attempt.Throttles > 0 || r.Spent.Starts > 0 {
			return fmt.Sprintf("a machine is being made for attempt %d, not at the first try", r.Attempt.Number)
		}
		return fmt.Sprintf("a machine is being made for attempt %d", r.Attempt.Number)
	case run.Running:
		return fmt.Sprintf("the worker of attempt %d is at work", r.Attempt.Number)
	case run.Terminating:
		if r.Attempt.Outcome == run.OutcomeSucceeded {
			return "the worker is done; its output is verified and kept"
		}
		return fmt.Sprintf("attempt %d is over and is cleaned up", r.Attempt.Number)
	case run.Retrying:
		return fmt.Sprintf("attempt %d failed; the next one begins at %s", r.Attempt.Number, r.RetryAt.Format(time.RFC3339))
	}
	return "has ended"
}
