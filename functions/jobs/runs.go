package jobs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// switched pauses or resumes a job, or clears its last result.
func switched(
	svc *jobs.Jobs, change func(context.Context, port.Identity, string, change.Precondition) (job.Job, error), w http.ResponseWriter, r *http.Request,
) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	if err := httpkit.DecodeOptionalJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	j, err := change(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), required)
	if err != nil {
		return fmt.Errorf("cannot change the job: %w", err)
	}
	return answer(svc, w, r, http.StatusOK, j)
}

// start returns 202 for a new run and 200 for an existing one.
func start(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	key, err := httpkit.IdempotencyKey(r)
	if err != nil {
		return err
	}
	var request contract.JobRunRequest
	if err := httpkit.DecodeOptionalJSON(w, r, &request); err != nil {
		return err
	}
	created, existing, err := svc.RunJob(r.Context(), jobs.RunRequest{
		Identity: httpkit.CallerOf(r.Context()), JobID: idOf(r), Parameters: request.Parameters, Labels: request.Labels, Inputs: api.Inputs(request.Inputs), ScheduledAt: request.ScheduledAt, Backfill: request.Backfill,
		Items: api.ItemValues(request.Items), ItemsFrom: request.ItemsFrom,
		Override:       spec.Override{Priority: spec.Priority(request.Priority), Key: request.ConcurrencyKey},
		IdempotencyKey: key, CorrelationID: httpkit.CorrelationID(r.Context()),
		TraceParent: httpkit.TraceParent(r),
	})
	if err != nil {
		return fmt.Errorf("cannot run the job: %w", err)
	}
	return httpkit.WriteAccepted(w, existing, "/v1/runs/"+url.PathEscape(created.ID), api.RunAccepted(created))
}

func runsOf(svc *jobs.Jobs, queries *runs.Queries, w http.ResponseWriter, r *http.Request) error {
	most, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	selector, err := httpkit.SelectorQuery(r.URL.Query())
	if err != nil {
		return err
	}
	children, err := httpkit.BoolQuery(r, "children")
	if err != nil {
		return err
	}
	who, page, filter := httpkit.CallerOf(r.Context()), port.Page{Cursor: r.URL.Query().Get("cursor"), Limit: most}, runs.Filter{JobID: idOf(r), Labels: selector}
	if children {
		filter.Trigger = run.TriggerFan
	}
	list, err := queries.Tasks(r.Context(), who, page, filter)
	if err == nil && len(list.Views) == 0 && page.Cursor == "" {
		_, err = svc.Job(r.Context(), who, idOf(r)) // the runs of a deleted job are shown
	}
	if err != nil {
		return fmt.Errorf("cannot list the runs of the job: %w", err)
	}
	found := contract.JobRuns{Runs: make([]contract.Task, 0, len(list.Views)), NextCursor: list.Next}
	for _, v := range list.Views {
		found.Runs = append(found.Runs, api.Task(v))
	}
	return httpkit.WriteJSON(w, http.StatusOK, found)
}

func explained(svc *jobs.Explanations, w http.ResponseWriter, r *http.Request) error {
	x, err := svc.ExplainJob(r.Context(), httpkit.CallerOf(r.Context()), idOf(r))
	if err != nil {
		return fmt.Errorf("cannot explain the job: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.JobExplanation(x))
}
