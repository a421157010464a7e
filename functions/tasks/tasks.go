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
		{
			Method: http.MethodGet, Pattern: "/v1/tasks/{task_id}/events", Access: httpkit.ForClients, Scope: access.RunsRead,
			Query:  []string{"after", "limit"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return events(queries, w, r) },
		},
		{
			Method: http.MethodGet, Pattern: "/v1/tasks/{task_id}/logs", Access: httpkit.ForClients, Scope: access.RunsRead,
			Query:  []string{"attempt", "stream", "offset", "follow"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return serveLog(texts, w, r) },
		},
		{
			Method: http.MethodGet, Pattern: "/v1/runs/{run_id}/updates", Access: httpkit.ForClients, Scope: access.RunsRead,
			Query:  []string{"after", "limit"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return updates(queries, w, r) },
		},
		{
			Method: http.MethodPost, Pattern: "/v1/runs/{run_id}/pin", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return pin(queries, runs, true, w, r) },
		},
		{
			Method: http.MethodPost, Pattern: "/v1/runs/{run_id}/unpin", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return pin(queries, runs, false, w, r) },
		},
		{
			Method: http.MethodPost, Pattern: "/v1/runs:cancel", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return cancelAll(runs, w, r) },
		},
		{
			Method: http.MethodPost, Pattern: "/v1/runs:retry", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return retryAll(runs, w, r) },
		},
		{
			Method: http.MethodPatch, Pattern: "/v1/runs", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return labelAll(runs, w, r) },
		},
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
		{
			Method: http.MethodGet, Pattern: all, Access: httpkit.ForClients, Scope: access.RunsRead,
			Query:  []string{"state", "kind", "jobId", "pool", "trigger", "skipped", "faultCode", "error", "label", "createdAfter", "createdBefore", "cursor", "limit"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return list(queries, w, r) },
		},
		{
			Method: http.MethodGet, Pattern: one, Access: httpkit.ForClients, Scope: access.RunsRead,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return task(queries, w, r) },
		},
		{
			Method: http.MethodPatch, Pattern: one, Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return relabel(queries, runs, w, r) },
		},
		{
			Method: http.MethodPost, Pattern: one + "/cancel", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return cancel(runs, w, r) },
		},
		{
			Method: http.MethodPost, Pattern: one + "/retry", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return retry(runs, w, r) },
		},
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
