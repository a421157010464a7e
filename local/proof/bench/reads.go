package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// readsQueued and readsEnded are the runs of the store.
	readsQueued = 300
	readsEnded  = 2000
	// readsOfOne is how often one client reads each address.
	readsOfOne = 400
)

// measureReads measures the reads that people and their scripts make most, with one client:
// a run's status, its explanation while it waits, and pages of the list.
func measureReads(ctx context.Context, t *table) error {
	c, addresses, err := startStack("-runner", "goroutine")
	if err != nil {
		return err
	}
	_, err = manyRuns(ctx, addresses.URL, readsEnded)
	if err == nil {
		err = readAll(ctx, t, addresses.URL, fmt.Sprintf("reads, %d ended runs", readsEnded), "RUN", "/v1/tasks?limit=20", "/v1/tasks?limit=1000", "/v1/tasks?state=Failed")
	}
	if err = errors.Join(err, c.end()); err != nil {
		return err
	}
	if c, addresses, err = startStack("-work", "wait", "-limit", "1"); err != nil {
		return err
	}
	tasks, err := submit(ctx, addresses.URL, readsQueued)
	if err == nil {
		last := tasks[readsQueued-1]
		err = readAll(ctx, t, addresses.URL, fmt.Sprintf("reads, %d queued runs", readsQueued), last,
			"/status/"+last, "/v1/tasks/"+last, "/v1/tasks?limit=20", "/v1/tasks?state=Pending", "/v1/runs/"+last+"/explain")
	}
	return errors.Join(err, c.end())
}

func readAll(ctx context.Context, t *table, url, name, run string, paths ...string) error {
	for _, path := range paths {
		took := make([]time.Duration, readsOfOne)
		for i := range took {
			startedAt := time.Now()
			var ignored json.RawMessage
			if err := request(ctx, http.MethodGet, url+path, "", &ignored); err != nil {
				return err
			}
			took[i] = time.Since(startedAt)
		}
		t.add(name, "GET "+strings.Replace(path, run, "RUN", 1)+", p50 / p99", "%.2f / %.2f ms", millis(percentile(took, 0.5)), millis(percentile(took, 0.99)))
	}
	return nil
}
