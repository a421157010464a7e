package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	// lateJobs jobs are due every latePeriod. In each of latePeriods periods a trigger refuses
	// new runs for refusedFor, so that the firings of that time fail.
	lateJobs    = 200
	latePeriods = 30
	latePeriod  = 5 * time.Second
	refusedFor  = 300 * time.Millisecond
	// lateGoal is the target, printed with the figure and not asserted.
	lateGoal = 6 * time.Second
)

// measureLateness measures how late schedules fire while commits fail.
func measureLateness(ctx context.Context, t *table) error {
	c, addresses, err := startStack("-work", "wait", "-limit", "1")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	if err := putJobs(ctx, addresses, 0, lateJobs, "@every "+latePeriod.String()); err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(filepath.Join(addresses.Data, stack.RecordsFile), sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// Refuse at a different offset in each period.
	shift := (latePeriod - refusedFor) / latePeriods
	for range latePeriods {
		if err := sqlitex.ExecuteTransient(conn, "CREATE TRIGGER refuse BEFORE INSERT ON runs BEGIN SELECT RAISE(FAIL, 'injected'); END", nil); err != nil {
			return err
		}
		pause(refusedFor)
		if err := sqlitex.ExecuteTransient(conn, "DROP TRIGGER refuse", nil); err != nil {
			return err
		}
		pause(latePeriod - refusedFor + shift)
	}
	pause(2 * lateGoal)
	late, missing, err := lateness(ctx, addresses.URL)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d schedules, %d failures of the store for %s", lateJobs, latePeriods, refusedFor)
	t.add(name, "from the time to the run, p50 / p99 / last (goal: p99 "+lateGoal.String()+")", "%.2f / %.2f / %.2f s",
		percentile(late, 0.5).Seconds(), percentile(late, 0.99).Seconds(), percentile(late, 1).Seconds())
	t.add(name, "firings, and those without a run", "%d, %d", len(late), missing)
	return nil
}

// lateness returns the delay of each firing's commit. missing is the number of times without a
// firing between the first and the last firing of each job.
func lateness(ctx context.Context, url string) (late []time.Duration, missing int, err error) {
	type times struct {
		first, last time.Time
		count       int
	}
	jobs := map[string]times{}
	for cursor := ""; ; {
		var page contract.TaskList
		if err := request(ctx, http.MethodGet, url+"/v1/tasks?limit=1000&cursor="+cursor, "", &page); err != nil {
			return nil, 0, err
		}
		for _, task := range page.Tasks {
			if task.LatenessSeconds == nil {
				continue
			}
			late = append(late, time.Duration(*task.LatenessSeconds*float64(time.Second)))
			seen := jobs[task.JobID]
			if seen.count == 0 || task.ScheduledAt.Before(seen.first) {
				seen.first = task.ScheduledAt
			}
			if task.ScheduledAt.After(seen.last) {
				seen.last = task.ScheduledAt
			}
			seen.count++
			jobs[task.JobID] = seen
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for _, seen := range jobs {
		missing += int(seen.last.Sub(seen.first)/latePeriod) + 1 - seen.count
	}
	return late, missing, nil
}
