// Package tasks serves /v1/tasks and /v1/runs: tasks, their lists, events and updates, cancel
// and retry. Clients see a run as a task, so both have one representation. It also serves
// /healthz, the OpenAPI document and the public keys for workers' tokens.
//
// A cancel and a retry are committed before the response. Pages are stable: a cursor continues
// after the last task of its page, even if new tasks were added.
package tasks

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
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
)

// Routes returns the routes of tasks and of the server. version is the
// program's version for /healthz.
func Routes(
	queries *runs.Queries, runs *runs.Runs, texts *logs.Archive, keys Keys, version string,
) []httpkit.Route {
	routes := []httpkit.Route{
		httpkit.ForClient(http.MethodGet, "/v1/tasks/{task_id}/events", access.RunsRead, httpkit.On(queries, events), "after", "limit"),
		httpkit.ForClient(http.MethodGet, "/v1/tasks/{task_id}/logs", access.RunsRead, httpkit.On(texts, serveLog), "attempt", "stream", "offset", "follow"),
		httpkit.ForClient(http.MethodGet, "/v1/runs/{run_id}/updates", access.RunsRead, httpkit.On(queries, updates), "after", "limit"),
		httpkit.ForClient(http.MethodPost, "/v1/runs/{run_id}/pin", access.RunsWrite, func(w http.ResponseWriter, r *http.Request) error { return pin(queries, runs, true, w, r) }),
		httpkit.ForClient(http.MethodPost, "/v1/runs/{run_id}/unpin", access.RunsWrite, func(w http.ResponseWriter, r *http.Request) error { return pin(queries, runs, false, w, r) }),
		httpkit.ForClient(http.MethodPost, "/v1/runs:cancel", access.RunsWrite, httpkit.On(runs, cancelAll)),
		httpkit.ForClient(http.MethodPost, "/v1/runs:retry", access.RunsWrite, httpkit.On(runs, retryAll)),
		httpkit.ForClient(http.MethodPatch, "/v1/runs", access.RunsWrite, httpkit.On(runs, labelAll)),
		{
			Method: http.MethodGet, Pattern: "/.well-known/jwks.json", Access: httpkit.ForAll,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return keySet(keys, w, r) },
		},
		{
			Method: http.MethodGet, Pattern: "/healthz", Access: httpkit.ForAll,
			Handle: func(w http.ResponseWriter, _ *http.Request) error {
				return httpkit.WriteJSON(w, http.StatusOK, contract.Health{Status: "ok", Version: version})
			},
		},
		{Method: http.MethodGet, Pattern: "/openapi.json", Access: httpkit.ForAll, Handle: description()},
	}
	for _, of := range []struct{ all, one string }{{"/v1/tasks", "/v1/tasks/{task_id}"}, {"/v1/runs", "/v1/runs/{run_id}"}} {
		routes = append(routes, twins(queries, runs, of.all, of.one)...)
	}
	return routes
}

// twins returns the routes that exist for both tasks and runs. all is the path of the list, one
// the path of a single task or run.
func twins(queries *runs.Queries, runs *runs.Runs, all, one string) []httpkit.Route {
	return []httpkit.Route{
		httpkit.ForClient(http.MethodGet, all, access.RunsRead, httpkit.On(queries, list), "state", "kind", "jobId", "pool", "trigger", "skipped", "faultCode", "error", "label", "createdAfter", "createdBefore", "cursor", "limit"),
		httpkit.ForClient(http.MethodGet, one, access.RunsRead, httpkit.On(queries, task)),
		httpkit.ForClient(http.MethodPatch, one, access.RunsWrite, func(w http.ResponseWriter, r *http.Request) error { return relabel(queries, runs, w, r) }),
		httpkit.ForClient(http.MethodPost, one+"/cancel", access.RunsWrite, httpkit.On(runs, cancel)),
		httpkit.ForClient(http.MethodPost, one+"/retry", access.RunsWrite, httpkit.On(runs, retry)),
	}
}

// idOf returns the id in the path: a task id or a run id, on either route.
func idOf(r *http.Request) string { return cmp.Or(r.PathValue("task_id"), r.PathValue("run_id")) }

func list(svc *runs.Queries, w http.ResponseWriter, r *http.Request) error {
	limit, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	filter, err := filterInQuery(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := svc.Tasks(r.Context(), httpkit.CallerOf(r.Context()), port.Page{
		Cursor: r.URL.Query().Get("cursor"), Limit: limit,
	}, filter)
	if err != nil {
		return fmt.Errorf("cannot list the tasks: %w", err)
	}
	answer := contract.TaskList{Tasks: make([]contract.Task, 0, len(page.Views)), NextCursor: page.Next, SearchedUntil: page.Until}
	for _, v := range page.Views {
		answer.Tasks = append(answer.Tasks, api.Task(v))
	}
	return httpkit.WriteJSON(w, http.StatusOK, answer)
}

// filterInQuery reads the filter of a list.
func filterInQuery(query url.Values) (runs.Filter, error) {
	filter := runs.Filter{
		JobID: query.Get("jobId"), Pool: query.Get("pool"), Kind: query.Get("kind"), Trigger: run.Trigger(query.Get("trigger")),
		Fault: fault.Code(query.Get("faultCode")), Error: query.Get("error"),
	}
	for name, values := range query {
		if name != "cursor" && values[0] == "" {
			return filter, fault.Invalid(name, "empty value, want a value or no parameter")
		}
	}
	for name, to := range map[string]*time.Time{"createdAfter": &filter.CreatedAfter, "createdBefore": &filter.CreatedBefore} {
		if !query.Has(name) {
			continue
		}
		at, err := time.Parse(time.RFC3339, query.Get(name))
		if err != nil {
			return filter, fault.Invalid(name, "malformed time, want RFC 3339 such as 2027-03-01T08:00:00Z")
		}
		*to = at
	}
	if query.Has("skipped") {
		skipped, err := httpkit.BoolOf(query, "skipped")
		if err != nil {
			return filter, err
		}
		filter.Skipped = &skipped
	}
	var err error
	if filter.Labels, err = httpkit.SelectorQuery(query); err != nil {
		return filter, err
	}
	if query.Has("state") {
		states := run.States()
		i := slices.IndexFunc(states, func(s run.State) bool { return strings.EqualFold(string(s), query.Get("state")) })
		if i < 0 {
			return filter, fault.Invalid("state", "unknown state, want one of %v", states)
		}
		filter.States = states[i : i+1]
	}
	return filter, checkFilter(filter, "")
}

func task(svc *runs.Queries, w http.ResponseWriter, r *http.Request) error {
	view, err := svc.Task(r.Context(), httpkit.CallerOf(r.Context()), idOf(r))
	if err != nil {
		return fmt.Errorf("cannot read the task: %w", err)
	}
	return writeTask(w, view)
}

// writeTask writes a task with its tag.
func writeTask(w http.ResponseWriter, v runs.View) error {
	w.Header().Set("ETag", runs.Tag(v.Run))
	return httpkit.WriteJSON(w, http.StatusOK, api.Task(v))
}

func events(svc *runs.Queries, w http.ResponseWriter, r *http.Request) error {
	after, err := httpkit.IntQuery(r, "after", 0, math.MaxInt32, 0)
	if err != nil {
		return err
	}
	limit, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	of, page, more, err := svc.Events(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), after, limit)
	if err != nil {
		return fmt.Errorf("cannot read the events: %w", err)
	}
	answer := contract.TaskEvents{Events: make([]contract.TaskEvent, 0, len(page))}
	for _, e := range page {
		answer.Events = append(answer.Events, api.Event(of, e))
	}
	if more {
		answer.NextAfter = page[len(page)-1].Seq
	}
	return httpkit.WriteJSON(w, http.StatusOK, answer)
}
