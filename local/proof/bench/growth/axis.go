package growth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Axis is what a store has many of.
type Axis struct {
	// Name is the plural of what is counted.
	Name string
	// OnTable reports that MeasureTable measures the axis, in place of Measure.
	OnTable bool
	// limit is the number of machines at once; 0 is no limit.
	limit int
	// fill adds those from and to, of at most most that will follow.
	fill       func(ctx context.Context, h *home, from, to int) error
	operations []operation
	// middle is the creation time of a run in the middle of n; nil reads it from SQLite.
	middle func(h *home, n int) time.Time
}

// operation is measured at each size.
type operation struct {
	name string
	// bound is the size above which the operation must not grow; 0 is every size.
	bound int
	do    func(ctx context.Context, h *home, s *sample, i int) error
}

// Axes returns all axes. small makes the ended runs with small documents.
func Axes(small bool) []Axis {
	return []Axis{
		{Name: "queued runs", limit: 1, fill: fillQueue, operations: append(onRuns("Pending"),
			operation{name: "cancel of a queued run", do: cancelQueued}, operation{name: "end of a run, start of the next", do: endOne})},
		{Name: "jobs", fill: fillJobs, operations: onJobs()},
		{Name: "ended runs", fill: fillEnded(small), operations: onRuns("Completed")},
		{Name: "tenants", fill: fillTenants, operations: onRuns("Completed")},
	}
}

// fillers is the number of concurrent clients that fill a store. Their commits share writes.
const fillers = 8

// concurrently calls do with from to to.
func concurrently(from, to int, do func(i int) error) error {
	next, failed := make(chan int), make([]error, fillers)
	var all sync.WaitGroup
	for worker := range fillers {
		all.Go(func() {
			for i := range next {
				failed[worker] = errors.Join(failed[worker], do(i))
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	all.Wait()
	return errors.Join(failed...)
}

// fillQueue submits runs of which one has the slot. Each has a creation time of its own.
func fillQueue(ctx context.Context, h *home, from, to int) error {
	err := concurrently(from, to, func(int) error {
		h.clock.Advance(time.Millisecond)
		_, err := h.submit(ctx, origin, "/v1/runs", programBody)
		return err
	})
	return errors.Join(err, h.settle(ctx))
}

func jobID(i int) string { return fmt.Sprintf("job-%07d", i) }

const jobBody = `{"image": "registry.example/report:1", "command": ["report"], "schedule": "0 3 1 1 *"}`

func fillJobs(ctx context.Context, h *home, from, to int) error {
	err := concurrently(from, to, func(i int) error {
		return h.call(ctx, origin, http.MethodPut, "/v1/jobs/"+jobID(i), jobBody, nil)
	})
	return errors.Join(err, h.settle(ctx))
}

// endedSpan is the time in which the ended runs were created. It is less than their retention.
const endedSpan = 6 * 24 * time.Hour

// endedMost is the number of ended runs in endedSpan.
const endedMost = 20_000_000

// endedAt returns the time at which ended run i was created.
func endedAt(i int) time.Time { return start.Add(-endedSpan + time.Duration(i)*(endedSpan/endedMost)) }

// fillEnded runs a program, and copies its rows.
func fillEnded(small bool) func(ctx context.Context, h *home, from, to int) error {
	return func(ctx context.Context, h *home, from, to int) error {
		id, err := h.submit(ctx, origin, "/v1/runs", programBody)
		if err != nil {
			return err
		}
		if err := h.finish(ctx, origin, id); err != nil {
			return err
		}
		e, err := endedOf(ctx, h.db, origin, id)
		if err == nil && small {
			e, err = e.small(ctx, h.db)
		}
		if err != nil {
			return err
		}
		return e.clone(ctx, h.db, to-from-1, func(i int) time.Time { return endedAt(from + i) }, h.random.number)
	}
}

// fillTenants adds tenants that have a job, a run that has ended, and one of the job that waits for
// its machine.
func fillTenants(ctx context.Context, h *home, from, to int) error {
	if from == 0 { // what one tenant has must not grow
		if err := fillQueue(ctx, h, 0, 4*sampled); err != nil {
			return err
		}
	}
	for i := from; i < to; i++ {
		tenant := fmt.Sprintf("tenant-%05d", i)
		if err := h.call(ctx, tenant, http.MethodPut, "/v1/jobs/"+jobID(0), jobBody, nil); err != nil {
			return err
		}
		for _, path := range []string{"/v1/runs", "/v1/jobs/" + jobID(0) + "/runs"} {
			body := programBody
			if path != "/v1/runs" {
				body = "{}"
			}
			h.clock.Advance(time.Millisecond)
			id, err := h.submit(ctx, tenant, path, body)
			if err == nil && path == "/v1/runs" {
				err = h.finish(ctx, tenant, id)
			}
			if err != nil {
				return err
			}
		}
		if err := h.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}
