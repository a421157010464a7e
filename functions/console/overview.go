package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// overviewPage answers: is anything wrong, since when, and where. Its figures are of all runs of
// a window; the API counts them.
var overviewPage = page{
	name: "overview", path: "overview", label: "Overview", scope: access.RunsRead, query: []string{"since"}, show: showOverview, live: true,
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
	Spans    []preset
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
	Hooks       []webhookRow
	Newest      []runRow
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
	Oldest runRow
	// More: there may be further ones.
	More bool
}

func showOverview(v *visit) (view, error) {
	data := overviewData{Since: cmp.Or(v.r.URL.Query().Get("since"), "24h")}
	if !slices.ContainsFunc(spans, func(s span) bool { return s.Value == data.Since }) {
		return view{}, fault.Invalid("since", "unknown span, want 1h, 24h or 7d")
	}
	window := url.Values{"window": {data.Since}}
	var list, pending contract.TaskList
	var jobs contract.JobList
	var pools contract.PoolList
	var hooks contract.WebhookList
	err := together(
		func() error { return v.get("/v1/activity", window, &data.Activity) },
		func() (err error) {
			list, err = v.listRuns(url.Values{"limit": {strconv.Itoa(newestRuns)}})
			return err
		},
		func() (err error) {
			pending, err = v.listRuns(url.Values{"state": {string(run.Pending)}, "limit": {strconv.Itoa(pendingRead)}})
			return err
		},
		func() error {
			return permitted(v.get("/v1/jobs", url.Values{"order": {"nextAt"}, "limit": {"8"}}, &jobs))
		},
		func() error { return permitted(v.get("/v1/pools", nil, &pools)) },
		func() error { return permitted(v.get("/v1/webhooks", url.Values{"limit": {hooksRead}}, &hooks)) },
		func() (err error) { data.Events, err = v.newestEvents(panelRows); return permitted(err) },
	)
	if err != nil {
		return view{}, err
	}
	for _, s := range spans {
		data.Spans = append(data.Spans, preset{Label: s.Text, Path: "overview?since=" + s.Value, Current: s.Value == data.Since})
	}
	for _, task := range list.Tasks {
		data.Newest = append(data.Newest, rowOf(task, v.now()))
	}
	data.Health, data.Causes = failuresOf(data.Activity)
	data.Flaky, data.Slow = flakyAndSlow(data.Activity.Work)
	data.Chart = histogramOf(data.Activity)
	data.Waiting = waitingOf(pending.Tasks, pools.Pools, v.now())
	data.Next = jobs.Jobs
	data.Pools = pools.Pools
	if data.Hooks, err = v.webhookRows(hooks.Webhooks); err != nil {
		return view{}, err
	}
	data.Hooks = slices.DeleteFunc(data.Hooks, func(w webhookRow) bool { return w.Status != contract.WebhookFailing && w.DisabledAt.IsZero() })
	return view{Title: "Overview", JSON: address("/v1/activity", window), Command: command("runs", "--since", sinceFlag(data.Since)), Content: data.content}, nil
}

// together calls functions concurrently and returns the first error in their order.
func together(functions ...func() error) error {
	errs := make([]error, len(functions))
	var all sync.WaitGroup
	for i, f := range functions {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	return errs[max(0, slices.IndexFunc(errs, func(err error) bool { return err != nil }))]
}

// permitted returns nil for an operation that the reader may not call: its part of the page is
// empty.
func permitted(err error) error {
	if p, ok := errors.AsType[*httpkit.Problem](err); ok && p.Body.Status == http.StatusForbidden {
		return nil
	}
	return err
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
			causes = append(causes, cause{f, address("runs", query)})
		}
	}
	return h, causes
}

// workName returns the name of a job, or of the runs of a kind without one.
func workName(kind, jobID string) string {
	switch {
	case jobID != "":
		return jobID
	case kind == run.KindJob:
		return "programs without a job"
	case kind == run.KindInference:
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
		groups[i].Oldest = rowOf(t, now)
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
