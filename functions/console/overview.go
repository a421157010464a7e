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
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// overviewPage answers: is anything wrong, since when, and where. It reads the newest runs of a
// span, at most overviewRuns, and never counts a whole table.
var overviewPage = page{
	name: "overview", path: "overview", label: "Overview", scope: access.RunsRead, query: []string{"since"}, show: showOverview, live: true,
}

// overviewRuns is the number of runs that the page reads, pendingRead that of waiting ones.
const (
	overviewRuns = "300"
	pendingRead  = 100
)

// overviewData is the content of the page.
type overviewData struct {
	Spans   []preset
	Since   string
	Count   int
	Partial bool
	From    time.Time
	Health  health
	Chart   *histogram
	Causes  []cause
	Waiting []waiting
	Jobs    []jobFigures
	Next    []contract.JobSummary
	Pools   []contract.Pool
	Hooks   []contract.Webhook
	Newest  []runRow
}

// health is the sentence at the top.
type health struct {
	Failed int
	// Since is the time of the first failure, Where the most frequent place.
	Since time.Time
	Where string
}

// cause is a group of failures with the same code and work.
type cause struct {
	Code, What string
	Count      int
	Last       runRow
	Path       string
}

// waiting is a group of runs that wait for the same pool.
type waiting struct {
	Pool   string
	Count  int
	Oldest runRow
	// More: there may be further ones.
	More bool
}

// jobFigures are the figures of the runs of a job, or of the same work.
type jobFigures struct {
	What, Path string
	Runs       int
	// Failed is the number of failures, Retried that of runs with more than one attempt.
	Failed, Retried int
	P95             float64
}

func showOverview(v *visit) (view, error) {
	since := cmp.Or(v.r.URL.Query().Get("since"), "24h")
	asked, err := apiFilter(url.Values{"since": {since}}, v.now())
	if err != nil {
		return view{}, err
	}
	asked.Set("limit", overviewRuns)
	data := overviewData{Since: since}
	var list, pending contract.TaskList
	var jobs contract.JobList
	var pools contract.PoolList
	var hooks contract.WebhookList
	err = together(
		func() (err error) { list, err = v.listRuns(asked); return err },
		func() (err error) {
			pending, err = v.listRuns(url.Values{"state": {string(run.Pending)}, "limit": {strconv.Itoa(pendingRead)}})
			return err
		},
		func() error {
			return permitted(v.get("/v1/jobs", url.Values{"order": {"nextAt"}, "limit": {"8"}}, &jobs))
		},
		func() error { return permitted(v.get("/v1/pools", nil, &pools)) },
		func() error { return permitted(v.get("/v1/webhooks", nil, &hooks)) },
	)
	if err != nil {
		return view{}, err
	}
	for _, s := range spans {
		data.Spans = append(data.Spans, preset{Label: s.Text, Path: "overview?since=" + s.Value, Current: s.Value == since})
	}
	data.Count, data.Partial = len(list.Tasks), list.NextCursor != ""
	data.From, _ = time.Parse(time.RFC3339, asked.Get("createdAfter"))
	if data.Partial {
		data.From = list.Tasks[len(list.Tasks)-1].CreatedAt
	}
	rows := make([]runRow, len(list.Tasks))
	for i, task := range list.Tasks {
		rows[i] = rowOf(task, v.now())
	}
	data.Newest = rows[:min(8, len(rows))]
	data.Health, data.Causes = failuresOf(rows, since)
	data.Jobs = figuresOf(rows)
	data.Chart = histogramOf(rows, data.From, v.now())
	data.Waiting = waitingOf(pending.Tasks, pools.Pools, v.now())
	data.Next = jobs.Jobs
	data.Pools = pools.Pools
	data.Hooks = slices.DeleteFunc(hooks.Webhooks, func(w contract.Webhook) bool { return w.DisabledAt.IsZero() })
	return view{Title: "Overview", JSON: address("/v1/runs", asked), Command: command("runs", "--since", sinceFlag(since)), Content: data.content}, nil
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

// failuresOf groups the failures by their code and work, the most frequent first.
func failuresOf(rows []runRow, since string) (h health, causes []cause) {
	for _, r := range rows {
		if r.State != string(run.Failed) && r.State != string(run.Orphaned) {
			continue
		}
		code := r.State
		if r.Fault != nil {
			code = r.Fault.Code
		}
		h.Failed++
		h.Since = r.EndedAt
		i := slices.IndexFunc(causes, func(c cause) bool { return c.Code == code && c.What == r.What })
		if i < 0 {
			query := url.Values{"since": {since}, "state": {r.State}}
			if r.Fault != nil {
				query.Set("faultCode", code)
			}
			if r.JobID != "" {
				query.Set("jobId", r.JobID)
			}
			causes = append(causes, cause{Code: code, What: r.What, Last: r, Path: address("runs", query)})
			i = len(causes) - 1
		}
		causes[i].Count++
	}
	slices.SortStableFunc(causes, func(a, b cause) int { return b.Count - a.Count })
	if len(causes) > 0 {
		h.Where = causes[0].What
	}
	return h, causes[:min(8, len(causes))]
}

// figuresOf returns the figures of the jobs that are slowest or fail most, those with failures or
// retries first.
func figuresOf(rows []runRow) []jobFigures {
	var all []jobFigures
	times := map[string][]float64{}
	for _, r := range rows {
		if r.EndedAt.IsZero() || r.Skipped {
			continue
		}
		i := slices.IndexFunc(all, func(f jobFigures) bool { return f.What == r.What })
		if i < 0 {
			path := "runs?kind=" + r.Kind
			if r.JobID != "" {
				path = "runs?jobId=" + url.QueryEscape(r.JobID)
			}
			all = append(all, jobFigures{What: r.What, Path: path})
			i = len(all) - 1
		}
		f := &all[i]
		if f.Runs++; r.Attempt > 1 {
			f.Retried++
		}
		if r.State == string(run.Failed) || r.State == string(run.Orphaned) {
			f.Failed++
		}
		if r.Seconds > 0 {
			times[r.What] = append(times[r.What], r.Seconds)
		}
	}
	for i := range all {
		if t := times[all[i].What]; len(t) > 0 {
			slices.Sort(t)
			all[i].P95 = t[min(len(t)-1, len(t)*95/100)]
		}
	}
	slices.SortStableFunc(all, func(a, b jobFigures) int {
		return cmp.Or(cmp.Compare((b.Failed+b.Retried)*a.Runs, (a.Failed+a.Retried)*b.Runs), cmp.Compare(b.P95, a.P95))
	})
	return all[:min(8, len(all))]
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
