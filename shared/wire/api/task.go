package api

import (
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Task returns the response of GET /v1/tasks/{task_id}.
func Task(v runs.View) contract.Task {
	r := v.Run
	task := contract.Task{
		TaskID: r.TaskID, RunID: r.ID, BatchID: r.BatchID, Labels: r.Labels, RetryOf: r.RetryOf, CorrelationID: r.CorrelationID,
		Kind: r.Work.Kind, Format: r.Work.Format, PI: r.Work.PI, Options: r.Work.Options, Program: programShown(r.Work), Inference: inferenceDetails(r),
		JobID: r.JobID, JobVersion: r.JobVersion, Trigger: string(r.Trigger), Skipped: r.Skipped, Priority: string(r.Priority),
		Policy: policyOf(r.Policy), State: string(r.State), Attempt: r.Attempt.Number,
		Pool: r.Slot.Pool, FellBack: fellBack(detour(r)), FailedAttempts: r.Spent.Attempts, FailedStarts: r.Spent.Starts,
		QueuePosition: position(v), Progress: progress(v), Worker: workerOf(v), Fault: faultOf(r.Fault),
		CreatedAt: r.CreatedAt, EnteredAt: r.EnteredAt, ScheduledAt: r.ScheduledAt, FiredAt: r.FiredAt,
		StartedAt: startedAt(r), EndedAt: r.EndedAt, RetryAt: r.RetryAt, ExpiresAt: r.ExpiresAt,
	}
	if r.Serves != nil {
		task.Serves = &contract.Serves{Pool: r.Serves.Pool, Replica: r.Serves.Replica}
	}
	if r.Attempt.Number > 1 {
		task.AttemptStartedAt = r.Attempt.StartedAt
	}
	task.TriggeredBy, task.Triggered = jobRun(r.TriggeredBy()), triggered(r)
	task.UntakenActions, task.FailedActions = untakenActions(r), failedActions(r)
	task.Children, task.Child = childrenOf(r), childOf(r)
	if !r.FiredAt.IsZero() {
		task.LatenessSeconds = new(seconds(r.FiredAt.Sub(r.ScheduledAt)))
	}
	if m := r.Missed; m != nil {
		task.Missed = &contract.Missed{Reason: string(m.Reason), Count: m.Count, Until: m.Until, By: jobRun(m.By)}
	}
	if r.Concurrency != nil {
		task.ConcurrencyKey = r.Concurrency.Key
	}
	if o := r.Overflowed; o != nil {
		task.Overflowed = &contract.Overflowed{Rule: string(o.Rule), By: o.By, Queued: o.Queued}
	}
	for _, f := range r.Violations {
		task.Violations = append(task.Violations, contract.Violation{
			Constraint: string(f.Constraint), Message: f.Message, Timestamp: f.At, Unchecked: f.Unchecked,
		})
	}
	task.Measured = measured(r, r.Metrics(v.At))
	if b := v.Heartbeat; b != nil && !r.State.Terminal() {
		task.Measured.HeartbeatsSent += b.Received
	}
	if r.Attempt.MachineName != "" {
		task.Machine = &contract.Machine{ID: r.Attempt.Machine.ID, Name: r.Attempt.MachineName, Exit: exitOf(r.Attempt.Exit)}
	}
	if r.Cancel != nil {
		task.Cancel = &contract.TaskCancel{At: r.Cancel.At, By: r.Cancel.By, Reason: r.Cancel.Reason}
	}
	task.Pin, task.Inputs, task.Event = (*contract.Pin)(r.Pin), inputsOf(r), eventShown(r)
	if r.Attempt.Report != nil {
		task.Metrics = r.Attempt.Report.Metrics
	}
	if o := r.Output; o != nil {
		task.Output = &contract.Output{
			Key: o.Key, FileName: o.FileName, Size: o.Size, ETag: o.ETag, ContentType: r.Work.ContentType(),
			AcceptedAt: o.AcceptedAt, ExpiresAt: o.ExpiresAt, DeletedAt: o.DeletedAt,
		}
	}
	return task
}

// startedAt returns when the program of the run first started. Records of an earlier version
// have only the start of the last attempt.
func startedAt(r run.Run) time.Time {
	if r.StartedAt.IsZero() {
		return r.Attempt.StartedAt
	}
	return r.StartedAt
}

// jobRun returns the wire form of a run reference; nil for the zero value.
func jobRun(r run.JobRun) *contract.JobRunRef {
	if r == (run.JobRun{}) {
		return nil
	}
	return new(contract.JobRunRef(r))
}

// triggered returns the wire form of the runs that a run triggered.
func triggered(r run.Run) (found []contract.JobRunRef) {
	for _, child := range r.Triggered {
		found = append(found, contract.JobRunRef(child))
	}
	return found
}

// untakenActions returns the wire form of the actions that are repeated.
func untakenActions(r run.Run) (found []contract.UntakenAction) {
	for _, a := range r.UntakenActions() {
		found = append(found, contract.UntakenAction{
			Action: string(a.Action), Type: string(a.Type), Tries: a.Tries, Answer: a.Answer, TriedAt: a.TriedAt, NextAt: a.NextAt, GiveUpAt: a.GiveUpAt,
		})
	}
	return found
}

// failedActions returns the wire form of the notifications that have failed.
func failedActions(r run.Run) (found []contract.FailedAction) {
	for _, a := range r.FailedActions {
		found = append(found, contract.FailedAction{
			Action: string(a.Action), Type: string(a.Type), Answer: a.Answer, FailedAt: a.At, Sending: r.Sends(a.Action),
		})
	}
	return found
}

// programShown returns the wire form of a job's program for clients; nil without a program.
func programShown(w spec.Work) *contract.Program {
	p := w.Program
	if p == nil {
		return nil
	}
	shown := &contract.Program{Image: w.Image, Command: p.Command, Completion: string(p.Completion), Logs: logsKept}
	if p.DropLogs {
		shown.Logs = logsDropped
	}
	for name, v := range p.Env {
		if shown.Env == nil {
			shown.Env = map[string]contract.EnvVariable{}
		}
		shown.Env[name] = contract.EnvVariable(v)
	}
	if p.Input != nil {
		shown.Input = &contract.ProgramInput{Size: p.Input.Size}
	}
	shown.Output = programOutput(p.Output)
	if codes := contract.ExitCodes(p.ExitCodes); len(codes.Success)+len(codes.Retry)+len(codes.Fail) > 0 {
		shown.ExitCodes = &codes
	}
	return shown
}

// The values of the field logs of a program.
const logsKept, logsDropped = "keep", "drop"

// workerOf returns the wire form of the current attempt's worker, with its report; nil without
// a worker.
func workerOf(v runs.View) *contract.Worker {
	attempt := v.Run.Attempt
	if attempt.WorkerID == "" {
		return nil
	}
	worker := &contract.Worker{ID: attempt.WorkerID}
	if v.Heartbeat != nil {
		worker.LastHeartbeatAt = v.Heartbeat.At
	}
	if told := attempt.Report; told != nil && told.Outcome != "" {
		worker.Report = &contract.WorkerReport{
			Outcome: string(told.Outcome), Output: told.Output,
			CancelledDuringPhase: told.Phase, PartialProgress: told.Partial,
		}
		if told.Category != "" {
			worker.Report.Error = &contract.TaskError{
				Category: string(told.Category), Message: told.Error, StackTrace: told.StackTrace, Retryable: told.Retryable,
			}
		}
	}
	return worker
}

// Event returns an item of GET /v1/tasks/{task_id}/events. r is the record as of the event or
// later.
func Event(r run.Run, e run.Event) contract.TaskEvent {
	event := contract.TaskEvent{
		EventID: e.ID, Seq: e.Seq, Type: string(e.Type), OccurredAt: e.At,
		From: string(e.From), State: string(e.State), Attempt: e.Attempt,
		Message: e.Message, Fault: faultOf(e.Fault), Exit: exitOf(e.Exit),
	}
	if e.Triggered != nil {
		event.Triggered = jobRun(*e.Triggered)
	}
	if m, ended := r.EndMetrics(e); ended {
		event.Measured = new(measured(r, m))
	}
	return event
}

func faultOf(f *fault.Fault) *contract.Fault {
	if f == nil {
		return nil
	}
	return &contract.Fault{
		Code: string(f.Code), Category: string(f.Category), Blame: string(f.Blame),
		Retryable: f.Retryable, Message: f.Message,
	}
}

func exitOf(exit *run.Exit) *contract.Exit {
	if exit == nil {
		return nil
	}
	return &contract.Exit{Code: exit.Code, Signal: exit.Signal, OOM: exit.OOM}
}
