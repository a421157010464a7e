package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// measureBacklog measures reads and submissions with a long queue.
func measureBacklog(ctx context.Context, t *table) error {
	c, addresses, err := startStack("-work", "wait", "-limit", "1", "-queue-limit", "34000")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	tasks, err := submit(ctx, addresses.URL, 301)
	if err != nil {
		return err
	}
	short, err := readCosts(ctx, addresses.URL, tasks)
	if err != nil {
		return err
	}
	more, err := submit(ctx, addresses.URL, 33_000-300)
	if err != nil {
		return err
	}
	tasks = append(tasks, more...)
	long, err := readCosts(ctx, addresses.URL, tasks)
	if err != nil {
		return err
	}
	const name = "33,000 queued runs"
	t.add(name, "GET /status, p50, and as a multiple of 300 queued", "%.2f ms, %.1f", millis(long.status), long.status.Seconds()/short.status.Seconds())
	t.add(name, "GET /v1/tasks?limit=1000, p50, and as a multiple of 300 queued, per task", "%.1f ms, %.1f",
		millis(long.list), long.list.Seconds()/1000/(short.list.Seconds()/301))
	late, err := longPolls(ctx, addresses.URL, tasks[1:4001])
	if err != nil {
		return err
	}
	t.add(name, "4,000 long polls with wait=5, p50 / p99", "%.2f / %.2f s", percentile(late, 0.5).Seconds(), percentile(late, 0.99).Seconds())
	return shed(ctx, t, addresses.URL, len(tasks))
}

// submit submits n runs with concurrent clients and returns their tasks.
func submit(ctx context.Context, url string, n int) ([]string, error) {
	tasks, errs := make([]string, n), make([]error, n)
	each(n, inFlight, func(i int) {
		s, err := export(ctx, url)
		tasks[i], errs[i] = s.TaskID, err
	})
	return tasks, errors.Join(errs...)
}

// each calls do for 0 to n-1 from concurrent goroutines.
func each(n, concurrent int, do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range concurrent {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}

// readCost has the median durations of two kinds of reads.
type readCost struct{ status, list time.Duration }

func readCosts(ctx context.Context, url string, tasks []string) (readCost, error) {
	median := func(n int, path func(i int) string) (time.Duration, error) {
		took := make([]time.Duration, n)
		for i := range took {
			startedAt := time.Now()
			var ignored json.RawMessage
			if err := request(ctx, http.MethodGet, url+path(i), "", &ignored); err != nil {
				return 0, err
			}
			took[i] = time.Since(startedAt)
		}
		return percentile(took, 0.5), nil
	}
	status, err := median(500, func(i int) string { return "/status/" + tasks[1+i*(len(tasks)-1)/500] })
	if err != nil {
		return readCost{}, err
	}
	list, err := median(15, func(int) string { return "/v1/tasks?limit=1000" })
	return readCost{status, list}, err
}

// longPolls waits for a change of all tasks concurrently and returns the durations.
func longPolls(ctx context.Context, url string, tasks []string) ([]time.Duration, error) {
	took, errs := make([]time.Duration, len(tasks)), make([]error, len(tasks))
	each(len(tasks), len(tasks), func(i int) {
		startedAt := time.Now()
		var ignored json.RawMessage
		errs[i] = request(ctx, http.MethodGet, url+"/status/"+tasks[i]+"?wait=5", "", &ignored)
		took[i] = time.Since(startedAt)
	})
	return took, errors.Join(errs...)
}

// shed submits runs beyond the limit of the queue. It checks that the store has every accepted
// run afterwards.
func shed(ctx context.Context, t *table, url string, stored int) error {
	const posts = 4000
	status, tasks := make([]int, posts), make([]string, posts)
	errs := make([]error, posts)
	each(posts, 400, func(i int) { status[i], tasks[i], errs[i] = post429(ctx, url) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	accepted, refused, lost := 0, 0, 0
	for i, code := range status {
		if code == http.StatusTooManyRequests {
			refused++
			continue
		}
		accepted++
		var s struct{}
		if err := request(ctx, http.MethodGet, url+"/status/"+tasks[i], "", &s); err != nil {
			lost++
		}
	}
	t.add("submissions beyond a queue of 34,000", "accepted, refused with 429, lost", "%d, %d, %d", accepted, refused, lost)
	if lost > 0 {
		return fmt.Errorf("%d accepted runs are not found", lost)
	}
	if stored+accepted > 35_000 {
		return fmt.Errorf("the queue has %d runs, want about 34,000", stored+accepted)
	}
	return nil
}

// post429 submits a run, which may be refused.
func post429(ctx context.Context, url string) (status int, task string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/export/mods", strings.NewReader(exportBody))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		TaskID string `json:"task_id"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return 0, "", err
	}
	if answer.StatusCode != http.StatusAccepted && answer.StatusCode != http.StatusTooManyRequests {
		return 0, "", fmt.Errorf("got %s for a submission, want 202 or 429", answer.Status)
	}
	return answer.StatusCode, body.TaskID, nil
}
