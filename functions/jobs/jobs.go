// Package jobs serves /v1/jobs: the stored definitions of jobs with their versions, and
// their runs.
//
// A change and a run are committed before the response. Changes are conditional on
// If-Match and If-None-Match.
package jobs

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Page lengths.
const (
	pageLimit   = 1000
	pageDefault = 50
	// upcomingLimit is the largest page in the order of firings, resultsLimit the largest number
	// of runs that a job in a list has, textLimit the longest text of a filter, in characters.
	upcomingLimit = 100
	resultsLimit  = 30
	textLimit     = 512
)

// Routes returns the routes of jobs.
func Routes(svc *jobs.Jobs, queries *runs.Queries, explanations *jobs.Explanations) []httpkit.Route {
	route := httpkit.ForClient
	on := func(serve func(*jobs.Jobs, http.ResponseWriter, *http.Request) error) httpkit.Handler {
		return func(w http.ResponseWriter, r *http.Request) error { return serve(svc, w, r) }
	}
	events := sensors.NewEvents(svc)
	return []httpkit.Route{
		route(http.MethodGet, "/v1/jobs", access.RunsRead, on(list), "cursor", "limit", "label", "order", "results", "schedule", "text"),
		route(http.MethodPut, "/v1/jobs/{job_id}", access.JobsWrite, on(put), "dryRun"),
		route(http.MethodGet, "/v1/jobs/{job_id}", access.RunsRead, on(get)),
		route(http.MethodPatch, "/v1/jobs/{job_id}", access.JobsWrite, on(patch)),
		route(http.MethodDelete, "/v1/jobs/{job_id}", access.JobsWrite, on(remove)),
		route(http.MethodGet, "/v1/jobs/{job_id}/versions/{version}", access.RunsRead, on(version)),
		route(http.MethodPost, "/v1/jobs/{job_id}/pause", access.JobsWrite, on(pause)),
		route(http.MethodPost, "/v1/jobs/{job_id}/resume", access.JobsWrite, on(resume)),
		route(http.MethodPost, "/v1/jobs/{job_id}/clear", access.JobsWrite, on(clearResult)),
		route(http.MethodGet, "/v1/jobs/{job_id}/explain", access.RunsRead, func(w http.ResponseWriter, r *http.Request) error {
			return explained(explanations, w, r)
		}),
		route(http.MethodPost, "/v1/jobs/{job_id}/runs", access.RunsWrite, on(start)),
		route(http.MethodPost, "/v1/jobs/{job_id}/events", access.RunsWrite, func(w http.ResponseWriter, r *http.Request) error { return received(events, w, r) }),
		route(http.MethodGet, "/v1/jobs/{job_id}/runs", access.RunsRead, func(w http.ResponseWriter, r *http.Request) error {
			return runsOf(svc, queries, w, r)
		}, "cursor", "limit", "label", "children"),
		{
			Method: http.MethodGet, Pattern: "/schemas/job.json", Access: httpkit.ForAll,
			Handle: func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Cache-Control", "no-cache")
				return httpkit.WriteBytes(w, http.StatusOK, "application/schema+json", contract.JobSchema())
			},
		},
	}
}

func idOf(r *http.Request) string { return r.PathValue("job_id") }

// answer writes a job with its tag.
func answer(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request, status int, j job.Job) error {
	w.Header().Set("ETag", jobs.Tag(j))
	httpkit.Warn(w, svc.Warnings(r.Context(), j)...)
	return httpkit.WriteJSON(w, status, api.Job(j))
}

func put(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	dryRun, err := httpkit.BoolQuery(r, "dryRun")
	if err != nil {
		return err
	}
	document, err := httpkit.ReadDocument(w, r, limit.JobDocument, httpkit.TypeJSON, httpkit.TypeYAML)
	if err != nil {
		return err
	}
	who := httpkit.CallerOf(r.Context())
	if dryRun {
		j, err := svc.Preview(r.Context(), who, idOf(r), document, required)
		if err != nil {
			return fmt.Errorf("cannot check the job: %w", err)
		}
		httpkit.Warn(w, svc.Warnings(r.Context(), j)...)
		return httpkit.WriteJSON(w, http.StatusOK, api.Job(j))
	}
	j, created, err := svc.Put(r.Context(), who, idOf(r), document, required)
	if err != nil {
		return fmt.Errorf("cannot store the job: %w", err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", "/v1/jobs/"+url.PathEscape(j.ID))
	}
	return answer(svc, w, r, status, j)
}

func patch(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	document, err := httpkit.ReadDocument(w, r, limit.JobDocument, httpkit.TypePatch, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	j, err := svc.Patch(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), document, required)
	if err != nil {
		return fmt.Errorf("cannot change the job: %w", err)
	}
	return answer(svc, w, r, http.StatusOK, j)
}

func get(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	j, err := svc.Job(r.Context(), httpkit.CallerOf(r.Context()), idOf(r))
	if err != nil {
		return fmt.Errorf("cannot read the job: %w", err)
	}
	return answer(svc, w, r, http.StatusOK, j)
}

func version(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	text := r.PathValue("version")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 || strconv.FormatInt(number, 10) != text {
		return fault.Invalid("version", "malformed version, want an integer from 1 to %d", math.MaxInt64)
	}
	j, err := svc.Version(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), number)
	if err != nil {
		return fmt.Errorf("cannot read the version of the job: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.JobVersion(j))
}

func remove(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	return httpkit.Remove(w, r, "job", idOf(r), svc.Delete)
}

func pause(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	return switched(svc, svc.Pause, w, r)
}

func resume(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	return switched(svc, svc.Resume, w, r)
}

func clearResult(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	return switched(svc, svc.Clear, w, r)
}

func list(svc *jobs.Jobs, w http.ResponseWriter, r *http.Request) error {
	most, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	results, err := httpkit.IntQuery(r, "results", 0, resultsLimit, 0)
	if err != nil {
		return err
	}
	jobs, next, err := ordered(svc, r, most)
	if err != nil {
		return err
	}
	newest := make([][]run.Run, len(jobs))
	if results > 0 {
		if newest, err = svc.Newest(r.Context(), jobs, results); err != nil {
			return err
		}
	}
	found := contract.JobList{Jobs: make([]contract.JobSummary, 0, len(jobs)), NextCursor: next}
	for i, j := range jobs {
		found.Jobs = append(found.Jobs, api.JobSummary(j, newest[i]))
	}
	return httpkit.WriteJSON(w, http.StatusOK, found)
}

// ordered reads a page of jobs in the order of the query.
func ordered(svc *jobs.Jobs, r *http.Request, most int) (found []job.Job, next string, err error) {
	who, query := httpkit.CallerOf(r.Context()), r.URL.Query()
	labels, err := httpkit.SelectorQuery(query)
	if err != nil {
		return nil, "", err
	}
	filter := jobs.Filter{Labels: labels, Text: query.Get("text"), Schedule: jobs.Schedule(query.Get("schedule"))}
	cursor := query.Get("cursor")
	switch order := query.Get("order"); {
	case order == "nextAt" && cursor+filter.Text+string(filter.Schedule)+query.Get("label") != "":
		return nil, "", fault.Invalid("order", "nextAt has one page of all jobs, want no cursor and no filter")
	case order == "nextAt":
		found, err = svc.Upcoming(r.Context(), who, min(most, upcomingLimit))
		return found, "", err
	case order != "id" && query.Has("order"):
		return nil, "", fault.Invalid("order", "unknown order, want id or nextAt")
	case utf8.RuneCountInString(filter.Text) > textLimit:
		return nil, "", fault.Invalid("text", "more than %d characters", textLimit)
	case query.Has("schedule") && !slices.Contains(schedules, filter.Schedule):
		return nil, "", fault.Invalid("schedule", "unknown schedule, want one of %v", schedules)
	}
	return svc.Jobs(r.Context(), who, port.Page{Cursor: cursor, Limit: most}, filter)
}

var schedules = []jobs.Schedule{jobs.Active, jobs.Paused, jobs.Unscheduled}
