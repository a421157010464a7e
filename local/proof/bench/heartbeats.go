package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// handOut returns a worker program that prints its envelope, one per line, and does nothing
// else.
func handOut(out io.Writer) work {
	var mu sync.Mutex
	return func(env map[string]string) {
		mu.Lock()
		_, _ = io.WriteString(out, env[contract.EnvelopeVariable]+"\n")
		mu.Unlock()
	}
}

// measureHeartbeats sends heartbeats for 10,000 running tasks as fast as one process accepts
// them.
//
// The memory of a running task is the growth of the resident memory per task beyond the first
// 2,000. Those have filled structures of fixed size, such as SQLite's page cache, and have
// opened the callers' connections. Before each reading the process collects its garbage and
// returns free pages. The simulated machines are included. A second figure includes garbage and
// caches: the growth since the process ran 50 tasks.
func measureHeartbeats(ctx context.Context, t *table) error {
	const first, tasks, lasts = 2000, 10_000, 10 * time.Second
	c, addresses, err := startStack("-runner", "goroutine", "-work", "envelopes")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	w := &workers{stack: c, url: addresses.URL}
	young, _, err := w.startTasks(ctx, inFlight)
	if err != nil {
		return err
	}
	_, few, err := w.startTasks(ctx, first)
	if err != nil {
		return err
	}
	grown, running, err := w.startTasks(ctx, tasks)
	if err != nil {
		return err
	}
	taken, took, err := w.heartbeat(ctx, lasts)
	if err != nil {
		return err
	}
	after, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	rested, err := c.collected()
	if err != nil {
		return err
	}
	cpu := after.cpu - running.cpu
	added := func(now usage) float64 { return float64(now.resident-few.resident) / (tasks - first) / 1024 }
	const name = "heartbeats, 10,000 running tasks"
	t.add(name, "taken per second, 64 callers on the same host", "%.0f", float64(taken)/took.Seconds())
	t.add(name, "CPU of the stack per heartbeat", "%.3f ms", millis(cpu)/float64(taken))
	t.add(name, "taken per second and core of the stack", "%.0f", float64(taken)/cpu.Seconds())
	t.add(name, "memory per running task", "%.1f KiB", added(running))
	t.add(name, "memory per running task, after the heartbeats", "%.1f KiB", added(rested))
	t.add(name, "memory per running task, garbage and caches included", "%.1f KiB", float64(grown.resident-young.resident)/(tasks-inFlight)/1024)
	return nil
}

// callers is the number of concurrent workers.
const callers = 64

// workers are the workers of a stack's running tasks.
type workers struct {
	stack     *child
	url       string
	envelopes []contract.TaskEnvelope
}

// startTasks starts tasks until there are tasks of them, and calls started for each. It returns
// the stack's usage before and after a garbage collection.
func (w *workers) startTasks(ctx context.Context, tasks int) (asIs, collected usage, err error) {
	more := tasks - len(w.envelopes)
	envelopesRead := make(chan error, 1)
	var envelopes []contract.TaskEnvelope
	go func() {
		var err error
		envelopes, err = envelopesOf(w.stack.output, more)
		envelopesRead <- err
	}()
	for range more {
		if _, err := export(ctx, w.url); err != nil {
			return asIs, collected, err
		}
	}
	if err := <-envelopesRead; err != nil {
		return asIs, collected, err
	}
	w.envelopes = append(w.envelopes, envelopes...)
	if err := callAll(ctx, envelopes, "started"); err != nil {
		return asIs, collected, err
	}
	if asIs, err = usageOf(w.stack.command.Process.Pid); err == nil {
		collected, err = w.stack.collected()
	}
	return asIs, collected, err
}

// heartbeat sends heartbeats for the time lasts. It returns the number of accepted heartbeats
// and the elapsed time.
func (w *workers) heartbeat(ctx context.Context, lasts time.Duration) (taken int64, took time.Duration, err error) {
	limited, done := context.WithTimeout(ctx, lasts)
	defer done()
	startedAt, counted := time.Now(), atomic.Int64{}
	var group errgroup.Group
	for i := range callers {
		group.Go(func() error {
			for n := i; limited.Err() == nil; n += callers {
				if err := callMinimal(ctx, w.envelopes[n%len(w.envelopes)], "heartbeat"); err != nil {
					return err
				}
				counted.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	return counted.Load(), time.Since(startedAt), err
}

// envelopesOf reads n envelopes.
func envelopesOf(from *bufio.Reader, n int) ([]contract.TaskEnvelope, error) {
	list := make([]contract.TaskEnvelope, n)
	for i := range list {
		text, err := from.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(text, &list[i])
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read an envelope: %w", err)
		}
	}
	return list, nil
}

// callAll makes one call for each worker.
func callAll(ctx context.Context, envelopes []contract.TaskEnvelope, what string) error {
	next := make(chan contract.TaskEnvelope)
	var group errgroup.Group
	for range callers {
		group.Go(func() (failed error) {
			for e := range next {
				if err := callMinimal(ctx, e, what); err != nil {
					failed = err
				}
			}
			return failed
		})
	}
	for _, e := range envelopes {
		next <- e
	}
	close(next)
	return group.Wait()
}

// callMinimal makes a worker's call with a minimal body.
func callMinimal(ctx context.Context, e contract.TaskEnvelope, what string) error {
	return callTask(ctx, e, what, fmt.Sprintf(`{"attempt":%d,"workerId":%q,"progressPct":50}`, e.Attempt, e.TaskID))
}

// callTask makes a worker's call.
func callTask(ctx context.Context, e contract.TaskEnvelope, what, body string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.CallbackBaseURL+"/v1/tasks/"+e.TaskID+"/"+what, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+e.TaskToken)
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %.300s", what, answer.StatusCode, text)
	}
	return err
}
