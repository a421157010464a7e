package tasks

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// cancel returns 202 while the task is still ending because of the request. It returns 200 when
// the task has ended, or if the request is too late.
func cancel(svc *runs.Runs, w http.ResponseWriter, r *http.Request) error {
	var request contract.CancelRequest
	if err := httpkit.DecodeOptionalJSON(w, r, &request); err != nil {
		return err
	}
	after, err := svc.Cancel(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), request.Reason)
	if err != nil {
		return fmt.Errorf("cannot cancel the task: %w", err)
	}
	answer := contract.CancelAnswer{TaskID: after.TaskID, State: string(after.State)}
	answer.Result, answer.Message = cancelled(after)
	status := http.StatusAccepted
	if after.State.Terminal() || answer.Result == contract.CancelTooLate {
		status = http.StatusOK
	}
	return httpkit.WriteJSON(w, status, answer)
}

// cancelled returns the result of a cancel request with an explanation.
func cancelled(r run.Run) (result, message string) {
	switch {
	case r.State.Terminal() && r.CancelsRest && (r.State == run.Completed || r.Cancel == nil):
		return contract.CancelRest, fmt.Sprintf("the task had already ended as %s; what comes after it is cancelled: job %s", r.State, strings.Join(r.Followers, ", "))
	case r.State == run.Completed, r.State.Terminal() && r.Cancel == nil:
		return contract.CancelTooLate, fmt.Sprintf("the task had already ended as %s", r.State)
	case r.State.Terminal():
		return contract.CancelDone, fmt.Sprintf("the task has ended as %s", r.State)
	case r.State == run.Terminating && r.Succeeded():
		return contract.CancelTooLate, "the worker has already reported success; its output is being verified and copied"
	case r.Work.Inference != nil:
		return contract.CancelRequested, "the stream has ended; the task ends when the engine has freed its slot"
	case r.State == run.Running && r.Attempt.WorkerID != "" && !r.Attempt.HandlesSigterm:
		return contract.CancelRequested, fmt.Sprintf(
			"the next response to the worker reports the cancel; the worker then has %s to stop", r.Policy.CancelGrace)
	case r.State == run.Running:
		return contract.CancelRequested, fmt.Sprintf("the worker receives SIGTERM and has %s to stop", r.Policy.CancelGrace)
	}
	return contract.CancelRequested, "the attempt has ended and is being cleaned up; the task ends after that"
}

// pin pins a run or unpins it, and returns the run.
func pin(queries *runs.Queries, svc *runs.Runs, pinned bool, w http.ResponseWriter, r *http.Request) error {
	if err := httpkit.DecodeOptionalJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	if _, err := svc.Pin(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), pinned); err != nil {
		return err
	}
	return task(queries, w, r)
}

func retry(svc *runs.Runs, w http.ResponseWriter, r *http.Request) error {
	key, err := httpkit.IdempotencyKey(r)
	if err != nil {
		return err
	}
	var request contract.RetryRequest
	if err := httpkit.DecodeOptionalJSON(w, r, &request); err != nil {
		return err
	}
	again, existing, err := svc.Retry(r.Context(), runs.RetryRequest{
		Identity: httpkit.CallerOf(r.Context()), TaskID: idOf(r),
		IdempotencyKey: key, CorrelationID: httpkit.CorrelationID(r.Context()),
		TraceParent: httpkit.TraceParent(r), PayloadDigest: httpkit.PayloadDigest(r.Context()), Downstream: request.Downstream,
		Changes: job.RetryChanges{
			Image: request.Image, Command: request.Command, Parameters: request.Parameters,
			Options: (*job.ExportOptions)(request.Options), Priority: spec.Priority(request.Priority), Labels: request.Labels,
			Inputs: api.Inputs(request.Inputs), OnlyFailed: request.OnlyFailed,
		},
	})
	if err != nil {
		return fmt.Errorf("cannot retry the task: %w", err)
	}
	return httpkit.WriteAccepted(w, existing, "/v1/tasks/"+url.PathEscape(again.TaskID), contract.RetryAccepted{
		TaskID: again.TaskID, RetryOf: again.RetryOf, State: string(again.State),
	})
}

// relabel changes the labels of a task.
func relabel(queries *runs.Queries, svc *runs.Runs, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	var request contract.LabelRequest
	if err := decodeLabels(w, r, &request, &request.Labels); err != nil {
		return err
	}
	if _, err := svc.Label(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), request.Labels, required); err != nil {
		return fmt.Errorf("cannot change the labels: %w", err)
	}
	return task(queries, w, r)
}

// decodeLabels decodes a request to change labels into v, whose labels are checked.
func decodeLabels(w http.ResponseWriter, r *http.Request, v any, labels *map[string]*string) error {
	body, err := httpkit.ReadDocument(w, r, httpkit.BodyLimit, httpkit.TypePatch, httpkit.TypeJSON)
	if err == nil {
		err = httpkit.ParseJSON(body, v)
	}
	if err != nil {
		return err
	}
	if len(*labels) == 0 {
		return fault.Invalid("labels", "no labels, want new values by key; null removes a label")
	}
	for _, problem := range label.Change(*labels).Check() {
		return fault.Invalid(label.Field(problem.Key), "%s", problem.Text)
	}
	return nil
}
