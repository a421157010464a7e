package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// jobWork is the environment variable with the duration of a job's program.
const jobWork = "CHAOS_WORK"

// firingJob is a job whose schedule fires while faults are injected. Without an interval only
// another job triggers it.
type firingJob struct {
	id       string
	every    time.Duration
	settings string
}

// limited is a setting that permits one run at a time.
const limited = `"constraints":{"maxConcurrentRuns":1,"catchUp":%t},"actions":{"onConstraintViolation":{"type":%q}%s}`

// firingJobs returns the jobs, each with a different action on a second run.
func firingJobs() []firingJob {
	return []firingJob{
		{"skips", time.Second, fmt.Sprintf(limited, false, spec.ActionSkip, "")},
		{"waits", 2 * time.Second, fmt.Sprintf(limited, true, spec.ActionWait, `,"onSuccess":{"type":"trigger_job","parameters":{"jobId":"follows"}}`)},
		{"kills", 3 * time.Second, fmt.Sprintf(limited, true, spec.ActionKillOld, "")},
		{"follows", 0, fmt.Sprintf(limited, false, spec.ActionWait, "")},
	}
}

// document returns the definition of the job.
func (j firingJob) document() string {
	schedule := ""
	if j.every > 0 {
		schedule = fmt.Sprintf(`"schedule":"@every %s",`, j.every)
	}
	return fmt.Sprintf(`{"image":%q,"env":{%q:"400ms"},%s%s}`, service.DefaultImage, jobWork, schedule, j.settings)
}

// answered repeats a request until it is answered, which must be with one of the wanted
// statuses.
func (w *world) answered(ctx context.Context, method, path, body string, into any, want ...int) bool {
	for {
		status, text, err := w.call(ctx, method, path, body)
		switch {
		case err != nil || status >= http.StatusInternalServerError:
			if !w.wait(ctx, retryPause) {
				return false
			}
			continue
		case !slices.Contains(want, status) || json.Unmarshal(text, into) != nil:
			w.fail("%s %s: got %d %.300s, want %v", method, path, status, text, want)
			return false
		}
		return true
	}
}

// startJobs stores the jobs, the one without a schedule first.
func (w *world) startJobs(ctx context.Context) {
	for _, j := range slices.Backward(firingJobs()) {
		w.answered(ctx, http.MethodPut, "/v1/jobs/"+j.id, j.document(), &contract.JobState{}, http.StatusCreated, http.StatusOK)
	}
}

// endSchedules ends the schedules of the jobs. It returns the time of each end.
func (w *world) endSchedules(ctx context.Context) (ended []time.Time) {
	for _, j := range firingJobs() {
		ended = append(ended, w.config.Clock.Now())
		var changed contract.JobState
		if j.every > 0 {
			w.answered(ctx, http.MethodPatch, "/v1/jobs/"+j.id, `{"schedule":null,"constraints":{"catchUp":null}}`, &changed, http.StatusOK)
		}
	}
	return ended
}

// awaitJobs waits until all runs of the jobs have ended and checks them. ended is the result of
// endSchedules.
func (w *world) awaitJobs(ctx context.Context, ended []time.Time) {
	jobs := firingJobs()
	runs := map[string][]contract.Task{}
	for i, j := range jobs { // the triggered job is the last one
		if runs[j.id] = w.endedRuns(ctx, j); runs[j.id] == nil {
			return
		}
		w.checkJob(ctx, j, runs[j.id], ended[i])
	}
	succeeded := func(r contract.Task) bool { return r.State == string(run.Completed) && !r.Skipped }
	if got, want := len(runs["follows"]), len(slices.DeleteFunc(slices.Clone(runs["waits"]), func(r contract.Task) bool { return !succeeded(r) })); got != want {
		w.fail("got %d runs of the triggered job, want one for each of the %d successes", got, want)
	}
	for _, j := range slices.Backward(jobs) { // a run of another job may trigger the last one
		w.checkFreeSlot(ctx, j)
	}
}

// runsOf returns all runs of a job.
func (w *world) runsOf(ctx context.Context, j firingJob) (all []contract.Task, ok bool) {
	for cursor := ""; ; {
		var page contract.JobRuns
		if !w.answered(ctx, http.MethodGet, "/v1/jobs/"+j.id+"/runs?limit=200&cursor="+url.QueryEscape(cursor), "", &page, http.StatusOK) {
			return nil, false
		}
		all = append(all, page.Runs...)
		if cursor = page.NextCursor; cursor == "" {
			return all, true
		}
	}
}

// endedRuns waits until the runs of a job have ended and returns them.
func (w *world) endedRuns(ctx context.Context, j firingJob) []contract.Task {
	for {
		runs, ok := w.runsOf(ctx, j)
		if !ok {
			return nil
		}
		if !slices.ContainsFunc(runs, func(r contract.Task) bool { return !run.State(r.State).Terminal() }) {
			return append([]contract.Task{}, runs...)
		}
		if !w.wait(ctx, 10*retryPause) {
			return nil
		}
	}
}

// checkJob checks that each time of a job's schedule has one record, that its runs did not
// overlap, and that each run ended once.
func (w *world) checkJob(ctx context.Context, j firingJob, runs []contract.Task, ended time.Time) {
	var stored contract.JobState
	if !w.answered(ctx, http.MethodGet, "/v1/jobs/"+j.id, "", &stored, http.StatusOK) {
		return
	}
	records := map[time.Time]int{}
	for _, r := range runs {
		w.checkJobRun(ctx, r)
		if r.ScheduledAt.IsZero() {
			continue
		}
		last := r.ScheduledAt
		if r.Missed != nil {
			last = r.Missed.Until
		}
		for at := r.ScheduledAt; !at.After(last); at = at.Add(j.every) {
			records[at.UTC()]++
		}
	}
	since := stored.CreatedAt.UTC().Truncate(time.Second)
	for at := since.Add(j.every); j.every > 0 && at.Before(ended); at = at.Add(j.every) {
		if records[at] != 1 {
			w.fail("%s: got %d records of its time %s, want 1", j.id, records[at], at.Format(time.RFC3339))
		}
		delete(records, at)
	}
	for at, n := range records {
		if at.Before(since) || at.Before(ended) || n > 1 {
			w.fail("%s: got %d records of %s, which its schedule does not name", j.id, n, at.Format(time.RFC3339))
		}
	}
	slices.SortFunc(runs, func(a, b contract.Task) int { return a.StartedAt.Compare(b.StartedAt) })
	for i := 1; i < len(runs); i++ {
		if before, r := runs[i-1], runs[i]; !before.StartedAt.IsZero() && r.StartedAt.Before(before.EndedAt) {
			w.fail("%s: %s started at %s, before the end of %s at %s", j.id, r.RunID, r.StartedAt, before.RunID, before.EndedAt)
		}
	}
	w.note("%s has %d runs", j.id, len(runs))
}

// checkJobRun checks the events of a job's run.
func (w *world) checkJobRun(ctx context.Context, r contract.Task) {
	w.mu.Lock()
	w.outcome.Runs++
	w.outcome.Attempts += r.Attempt
	w.mu.Unlock()
	var page contract.TaskEvents
	if !w.answered(ctx, http.MethodGet, "/v1/tasks/"+r.TaskID+"/events?limit=1000", "", &page, http.StatusOK) {
		return
	}
	if r.Missed != nil {
		return // the end is its only event
	}
	if err := stacktest.CheckEvents(page.Events); err != nil {
		w.fail("%s: %v: %s", r.RunID, err, formatEvents(page.Events))
	}
	if r.Skipped && (r.Attempt > 0 || r.Machine != nil) {
		w.fail("%s was skipped with attempt %d and machine %v", r.RunID, r.Attempt, r.Machine)
	}
}

// checkFreeSlot checks that the slot of a job is free, because one more run starts at once.
func (w *world) checkFreeSlot(ctx context.Context, j firingJob) {
	var more contract.Task
	if !w.answered(ctx, http.MethodPost, "/v1/jobs/"+j.id+"/runs", "{}", &more, http.StatusAccepted, http.StatusOK) {
		return
	}
	for _, r := range w.endedRuns(ctx, j) {
		if r.TaskID == more.TaskID && (r.State != string(run.Completed) || len(r.Violations) > 0) {
			w.fail("%s: a run after all others ended as %s with violations %v", j.id, r.State, r.Violations)
		}
	}
}
