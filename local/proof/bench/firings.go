package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// firingJobs is the number of jobs that are due at one time.
const firingJobs = 10_000

// firingGoal is the target time for creating all runs on two cores. It is printed with the
// figure and not asserted.
const firingGoal = 20 * time.Second

// measureFirings stores jobs that are due at the same time and measures the delay of their
// runs: from the nominal time to the creation time in the record. The pool admits one machine,
// so the other runs are queued.
func measureFirings(ctx context.Context, t *table) error {
	c, addresses, err := startStack("-work", "wait", "-limit", "1")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	startedAt := time.Now()
	if err := putJobs(ctx, addresses, 0, firingJobs/20, ""); err != nil {
		return err
	}
	ahead := 40*time.Since(startedAt) + 20*time.Second
	at := time.Now().Add(ahead).Truncate(time.Minute).Add(time.Minute)
	startedAt = time.Now()
	if err := putJobs(ctx, addresses, 0, firingJobs, "@at "+at.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	put := time.Since(startedAt)
	if !time.Now().Before(at) {
		return fmt.Errorf("storing %d jobs took %s, longer than was foreseen; measure again", firingJobs, put)
	}
	if _, err := c.written(); err != nil {
		return err
	}
	before, procErr := usageOf(c.command.Process.Pid)
	pause(time.Until(at))
	late, err := awaitFirings(ctx, addresses.URL, at)
	if err != nil {
		return err
	}
	written, err := c.written()
	if err != nil {
		return err
	}
	const name = "10,000 jobs due at one time"
	t.add(name, "PUT of a job, with 50 clients", "%.2f ms", millis(put)/firingJobs)
	t.add(name, "time to the run, p50 / p99 / last (goal: "+firingGoal.String()+" on two cores)", "%.1f / %.1f / %.1f s",
		percentile(late, 0.5).Seconds(), percentile(late, 0.99).Seconds(), percentile(late, 1).Seconds())
	t.add(name, "commits, fsyncs, rows written per firing, with its admission", "%.1f, %.2f, %.0f",
		float64(written[0])/firingJobs, float64(written[1])/firingJobs, float64(written[2])/firingJobs)
	if after, err := usageOf(c.command.Process.Pid); err == nil && procErr == nil {
		t.add(name, "CPU of the stack per firing, with its admission", "%.2f ms", millis(after.cpu-before.cpu)/firingJobs)
	}
	return nil
}

// putJobs stores the jobs with the numbers first to last-1.
func putJobs(ctx context.Context, at stack.Addresses, first, last int, schedule string) error {
	token, err := stack.ReadToken(at.TokenFile) // the jobs are programs of the host
	if err != nil {
		return err
	}
	errs := make([]error, last-first)
	each(last-first, inFlight, func(i int) {
		id := fmt.Sprintf("job-%05d", first+i)
		body := fmt.Sprintf(`{"id":%q,"image":%q,"schedule":%q,"constraints":{"maxConcurrentRuns":1}}`, id, service.DefaultImage, schedule)
		if schedule == "" {
			body = fmt.Sprintf(`{"id":%q,"image":%q}`, id, service.DefaultImage)
		}
		errs[i] = requestAs(ctx, token, http.MethodPut, at.URL+"/v1/jobs/"+id, body, &struct{}{})
	})
	return errors.Join(errs...)
}

// awaitFirings waits until every job has a run. It returns the delay of each.
func awaitFirings(ctx context.Context, url string, at time.Time) (late []time.Duration, err error) {
	for until := time.Now().Add(10 * time.Minute); time.Now().Before(until); pause(firingGoal / 2) {
		late = late[:0]
		for cursor := ""; ; {
			var page contract.TaskList
			if err := request(ctx, http.MethodGet, url+"/v1/tasks?limit=1000&cursor="+cursor, "", &page); err != nil {
				return nil, err
			}
			for _, task := range page.Tasks {
				late = append(late, task.CreatedAt.Sub(at))
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if len(late) == firingJobs {
			return late, nil
		}
	}
	return nil, fmt.Errorf("got %d runs of %d jobs after 10 minutes", len(late), firingJobs)
}
