package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// submit requests a run and repeats the request until it is answered.
func (w *world) submit(key string, policy *contract.Policy) {
	var accepted run.Run
	err := w.ClientCall(func(ctx context.Context) (err error) {
		submission, err := api.Export(limit.Formats()[0], contract.ExportRequest{PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Policy: policy})
		if err != nil {
			return err
		}
		submission.Identity, submission.IdempotencyKey, submission.CorrelationID = harness.Client, key, key
		accepted, _, err = w.System.Submit(ctx, submission)
		return err
	})
	if err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.InvalidRequest {
			w.Broken = fmt.Errorf("request: %w", err)
		}
		w.Time.After(w.UpTo(5*time.Second), func() { w.submit(key, policy) })
		return
	}
	w.accepted(key, accepted)
}

// accepted schedules the later actions on an accepted run.
func (w *world) accepted(key string, r run.Run) {
	w.Note("%s is accepted as %s", key, r.TaskID)
	w.acceptedTasks = append(w.acceptedTasks, r.TaskID)
	if w.Chance(w.Plan.Cancels) {
		w.Time.After(w.UpTo(w.Longest), func() { w.cancel(r.TaskID) })
	}
	if w.Injects("aborted execution", w.Plan.Aborts) {
		w.Time.After(w.UpTo(w.Longest), func() { w.abort(r.Ref()) })
	}
}

// drawRequest draws the policy of a request; nil means the default.
func (w *world) drawRequest() *contract.Policy {
	if w.Chance(0.6) {
		return nil
	}
	return harness.Requested(w.DrawPolicy(w.Longest))
}

// retry retries an ended task, and repeats the call with the same key until it
// is answered.
func (w *world) retry(task string) {
	var accepted run.Run
	err := w.ClientCall(func(ctx context.Context) (err error) {
		accepted, _, err = w.System.Retry(ctx, runs.RetryRequest{
			Identity: harness.Client, TaskID: task, IdempotencyKey: "again " + task, CorrelationID: "again",
		})
		return err
	})
	if f, known := errors.AsType[*fault.Fault](err); known && f.Code == fault.InvalidRequest {
		w.Fail("retry of %s: %v", task, err)
		return
	}
	if err != nil {
		w.Time.After(w.UpTo(5*time.Second), func() { w.retry(task) })
		return
	}
	w.retried++
	w.accepted("retry of "+task, accepted)
}

// abort stops a run's execution from outside of Sortie.
func (w *world) abort(ref run.Ref) {
	w.Call(func(ctx context.Context) {
		err := w.Stop(ctx, run.ExecutionName(ref, 1), "aborted")
		w.Note("execution of %s is aborted: %v", ref.ID, err)
	})
}

// maybeCancel sometimes cancels a task during another operation. task is empty for a machine
// that no attempt has claimed.
func (w *world) maybeCancel(task string) {
	if task == "" || w.inMaybeCancel || !w.Chance(w.Plan.Cancels*0.03) {
		return
	}
	w.inMaybeCancel = true
	defer func() { w.inMaybeCancel = false }()
	w.Time.Spawn(false, func() { w.cancel(task) })
}

func (w *world) cancel(task string) {
	var current run.Run
	err := w.ClientCall(func(ctx context.Context) (err error) {
		current, err = w.System.Cancel(ctx, harness.Client, task, "user_requested")
		return err
	})
	w.Note("cancel of %s: %v", task, err)
	if err != nil {
		w.Time.After(w.UpTo(5*time.Second), func() { w.cancel(task) })
		return
	}
	if _, before := w.cancelled[task]; !before {
		w.cancelled[task] = current.State
	}
	if current.Cancel == nil && !current.State.Terminal() {
		w.Fail("acknowledged cancel of %s: got a run without a cancel request", task)
	}
	if r, ok := w.Record(task); ok && r.Cancel == nil && !r.State.Terminal() {
		w.Fail("acknowledged cancel of %s is lost", task)
	}
}
