package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// handOut is a program that does nothing but tell its envelope, one a line.
func handOut(out io.Writer) work {
	var mu sync.Mutex
	return func(env map[string]string) {
		mu.Lock()
		_, _ = io.WriteString(out, env[contract.EnvelopeVariable]+"\n")
		mu.Unlock()
	}
}

// measureHeartbeats has 10,000 tasks running, and as many heartbeats sent as one
// process takes.
func measureHeartbeats(ctx context.Context, t *table) error {
	const tasks, callers, lasts = 10_000, 64, 10 * time.Second
	c, addresses, err := beginStack("-runner", "goroutine", "-work", "envelopes")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	for range inFlight { // what every process needs, whatever it runs
		if _, err := export(ctx, addresses.URL); err != nil {
			return err
		}
	}
	if _, err := envelopesOf(c.output, inFlight); err != nil {
		return err
	}
	before, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	told := make(chan error, 1)
	var envelopes []contract.TaskEnvelope
	go func() {
		var err error
		envelopes, err = envelopesOf(c.output, tasks)
		told <- err
	}()
	for range tasks {
		if _, err := export(ctx, addresses.URL); err != nil {
			return err
		}
	}
	if err := <-told; err != nil {
		return err
	}
	if err := everyone(ctx, envelopes, callers, "started"); err != nil {
		return err
	}
	running, err := usageOf(c.command.Process.Pid)
	if err != nil {
		return err
	}
	limited, done := context.WithTimeout(ctx, lasts)
	defer done()
	began, taken := time.Now(), atomic.Int64{}
	var group sync.WaitGroup
	var failure atomic.Value
	for i := range callers {
		group.Go(func() {
			for n := i; limited.Err() == nil; n += callers {
				if err := say(ctx, envelopes[n%tasks], "heartbeat"); err != nil {
					failure.Store(err)
					return
				}
				taken.Add(1)
			}
		})
	}
	group.Wait()
	took := time.Since(began)
	after, err := usageOf(c.command.Process.Pid)
	if lost, ok := failure.Load().(error); ok {
		err = errors.Join(err, lost)
	}
	if err != nil {
		return err
	}
	const name = "heartbeats, 10,000 running tasks"
	t.add(name, "taken per second, 64 callers on the same host", "%.0f", float64(taken.Load())/took.Seconds())
	t.add(name, "CPU of the stack per heartbeat", "%.3f ms", millis(after.cpu-running.cpu)/float64(taken.Load()))
	t.add(name, "taken per second and core of the stack", "%.0f", float64(taken.Load())/(after.cpu-running.cpu).Seconds())
	t.add(name, "memory per running task", "%.1f KiB", float64(running.resident-before.resident)/tasks/1024)
	t.add(name, "memory per running task, after the heartbeats", "%.1f KiB", float64(after.resident-before.resident)/tasks/1024)
	return nil
}

// envelopesOf reads as many envelopes as were asked for.
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

// everyone has each worker say something once.
func everyone(ctx context.Context, envelopes []contract.TaskEnvelope, callers int, what string) error {
	next := make(chan contract.TaskEnvelope)
	var group sync.WaitGroup
	var failure atomic.Value
	for range callers {
		group.Go(func() {
			for e := range next {
				if err := say(ctx, e, what); err != nil {
					failure.Store(err)
				}
			}
		})
	}
	for _, e := range envelopes {
		next <- e
	}
	close(next)
	group.Wait()
	err, _ := failure.Load().(error)
	return err
}

// say makes a worker's call that says no more than it has to.
func say(ctx context.Context, e contract.TaskEnvelope, what string) error {
	return tell(ctx, e, what, fmt.Sprintf(`{"attempt":%d,"workerId":%q,"progressPct":50}`, e.Attempt, e.TaskID))
}

// tell makes a worker's call.
func tell(ctx context.Context, e contract.TaskEnvelope, what, body string) error {
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
