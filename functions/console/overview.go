package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/functions/console/webhooks"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// overviewPage answers: is anything wrong, since when, and where. Its figures are of all runs of
// a window; the API counts them.
var overviewPage = page.Page{
	Name: "overview", Path: "overview", Label: "Overview", Scope: access.RunsRead, Query: []string{"since"}, Show: showOverview, Live: true,
}

// newestRuns and panelRows are numbers of rows. pendingRead is the number of waiting runs that
// the page reads, hooksRead that of webhooks.
const (
	newestRuns  = 8
	panelRows   = 8
	pendingRead = 100
	hooksRead   = "20"
)

// overviewData is the content of the page.
type overviewData struct {
	Spans    []ui.Preset
	Since    string
	Activity contract.Activity
	Health   health
	Chart    *histogram
	Causes   []cause
	Waiting  []waiting
	// Flaky are the jobs whose first attempts fail most, Slow those with the longest runs.
	Flaky, Slow []contract.ActivityWork
	Next        []contract.JobSummary
	Pools       []contract.Pool
	Hooks       []webhooks.Row
	Newest      []page.RunRow
	Events      []eventRow
}

// health is the sentence at the top.
type health struct {
	Failed int
	// Since is the time of the first failure, Where the most frequent place.
	Since time.Time
	Where string
}

// cause is a group of failures. Path is the list of them.
type cause struct {
	contract.ActivityFailure
	Path string
}

// waiting is a group of runs that wait for the same pool.
type waiting struct {
	Pool   string
	Count  int
	Oldest page.RunRow
	// More: there may be further ones.
	More bool
}

func showOverview(v *page.Visit) (page.View, error) {
	data := overviewData{Since: cmp.Or(v.Request.URL.Query().Get("since"), "24h")}
	if !slices.ContainsFunc(page.Spans, func(s page.Span) bool { return s.Value == data.Since }) {
		return page.View{}, fault.Invalid("since", "unknown span, want 1h, 24h or 7d")
	}
	window := url.Values{"window": {data.Since}}
	var list, pending contract.TaskList
	var jobs contract.JobList
	var pools contract.PoolList
	var hooks contract.WebhookList
	err := page.Together(
		func() error { return v.Get("/v1/activity", window, &data.Activity) },
		func() (err error) {
			list, err = v.ListRuns(url.Values{"limit": {strconv.Itoa(newestRuns)}})
			return err
		},
		func() (err error) {
			pending, err = v.ListRuns(url.Values{"state": {string(run.Pending)}, "limit": {strconv.Itoa(pendingRead)}})
			return err
		},
		func() error {
			return page.Permitted(v.Get("/v1/jobs", url.Values{"order": {"nextAt"}, "limit": {"8"}}, &jobs))
		},
		func() error { return page.Permitted(v.Get("/v1/pools", nil, &pools)) },
		func() error { return page.Permitted(v.Get("/v1/webhooks", url.Values{"limit": {hooksRead}}, &hooks)) },
		func() (err error) { data.Events, err = newestEvents(v, panelRows); return page.Permitted(err) },
	)
	if err != nil {
		return page.View{}, err
	}
	for _, s := range page.Spans {
		data.Spans = append(data.Spans, ui.Preset{Label: s.Text, Path: "overview?since=" + s.Value, Current: s.Value == data.Since})
	}
	for _, task := range list.Tasks {
		data.Newest = append(data.Newest, page.RowOf(task, v.Now()))
	}
	data.Health, data.Causes = failuresOf(data.Activity)
	data.Flaky, data.Slow = flakyAndSlow(data.Activity.Work)
	data.Chart = histogramOf(data.Activity)
	data.Waiting = waitingOf(pending.Tasks, pools.Pools, v.Now())
	data.Next = jobs.Jobs
	data.Pools = pools.Pools
	if data.Hooks, err = webhooks.ReadRows(v, hooks.Webhooks); err != nil {
		return page.View{}, err
	}
	data.Hooks = slices.DeleteFunc(data.Hooks, func(w webhooks.Row) bool { return w.Status != contract.WebhookFailing && w.DisabledAt.IsZero() })
	return page.View{Title: "Overview", JSON: ui.WithQuery("/v1/activity", window), Command: ui.Command("runs", "--since", page.SinceFlag(data.Since)), Content: data.content}, nil
}

// failuresOf returns the sentence at the top, and the most frequent causes.
func failuresOf(a contract.Activity) (h health, causes []cause) {
	h.Failed = a.Runs.Failed
	for i, f := range a.Failures {
		if i == 0 {
			h.Where = workName(f.Kind, f.JobID)
		}
		if h.Since.IsZero() || f.FirstAt.Before(h.Since) {
			h.Since = f.FirstAt
		}
		if i < panelRows {
			query := workQuery(a, f.Kind, f.JobID)
			query.Set("state", f.State)
			if f.Code != f.State {
				query.Set("faultCode", f.Code)
			}
			causes = append(causes, cause{f, ui.WithQuery("runs", query)})
		}
	}
	return h, causes
}

// workName returns the name of a job, or of the runs of a kind without one.
func workName(kind, jobID string) string {
	switch {
	case jobID != "":
		return jobID
	case kind == spec.KindJob:
		return "programs without a job"
	case kind == spec.KindInference:
		return "inference tasks"
	}
	return kind + "s"
}

// workQuery returns the filter for the runs of a job, or of a kind, in the window of figures.
func workQuery(a contract.Activity, kind, jobID string) url.Values {
	query := url.Values{"createdAfter": {a.Since.Format(time.RFC3339)}}
	if jobID != "" {
		query.Set("jobId", jobID)
	} else {
		query.Set("kind", kind)
	}
	return query
}

// flakyAndSlow returns the work whose first attempts fail most, and the work with the longest runs.
func flakyAndSlow(all []contract.ActivityWork) (flaky, slow []contract.ActivityWork) {
	for _, w := range all {
		if w.FirstAttemptFailed > 0 {
			flaky = append(flaky, w)
		}
		if w.P95Seconds > 0 {
			slow = append(slow, w)
		}
	}
	slices.SortStableFunc(slow, func(a, b contract.ActivityWork) int { return cmp.Compare(b.P95Seconds, a.P95Seconds) })
	return flaky[:min(panelRows, len(flaky))], slow[:min(panelRows, len(slow))]
}

// waitingOf groups queued runs by their pool. The list is the newest first, and may have only a
// part of them; the pools have the number of all.
func waitingOf(tasks []contract.Task, pools []contract.Pool, now time.Time) (groups []waiting) {
	for _, t := range tasks {
		i := slices.IndexFunc(groups, func(w waiting) bool { return w.Pool == t.Pool })
		if i < 0 {
			groups = append(groups, waiting{Pool: t.Pool})
			i = len(groups) - 1
		}
		groups[i].Count++
		groups[i].Oldest = page.RowOf(t, now)
	}
	for i := range groups {
		w := &groups[i]
		w.More = len(tasks) >= pendingRead
		for _, p := range pools {
			if p.ID == w.Pool && p.Queued > w.Count {
				w.Count, w.More = p.Queued, false
			}
		}
	}
	return groups
}
