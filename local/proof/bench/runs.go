package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// inFlight is the number of concurrent clients.
const inFlight = 50

var client = &http.Client{Transport: &http.Transport{MaxIdleConns: 500, MaxIdleConnsPerHost: 500}}

// callBack is a worker that only makes the callback.
func callBack(env map[string]string) {
	post(env["CALLBACK_URL"], fmt.Sprintf(`{"task_id":%q,"status":"success"}`, env["TASK_ID"]))
}

func post(url, body string) {
	answer, err := client.Post(url, "application/json", strings.NewReader(body)) //nolint:noctx // a worker's last call
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}

func measureRuns(ctx context.Context, t *table) error {
	for _, kind := range []struct {
		name, runner string
		runs         int
	}{
		{"runs, machines are goroutines", "goroutine", 5000},
		{"runs, through fly-go and the machines API", "function", 2000},
	} {
		c, addresses, err := startStack("-runner", kind.runner)
		if err != nil {
			return err
		}
		if err := errors.Join(measureMany(ctx, t, kind.name, c, kind.runs, exports(addresses.URL)), c.end()); err != nil {
			return err
		}
	}
	return measurePrograms(ctx, t)
}

// measureMany measures runs with 50 concurrent clients, after a warm-up.
func measureMany(ctx context.Context, t *table, name string, c *child, runs int, start starter) error {
	if _, err := startMany(ctx, runs/10+inFlight, inFlight, start); err != nil {
		return err
	}
	if _, err := c.written(); err != nil {
		return err
	}
	before, procErr := usageOf(c.command.Process.Pid)
	startedAt := time.Now()
	timings, err := startMany(ctx, runs, inFlight, start)
	if err != nil {
		return err
	}
	took := time.Since(startedAt)
	written, err := c.written()
	if err != nil {
		return err
	}
	t.add(name, "runs/s, 50 in flight", "%.0f", float64(runs)/took.Seconds())
	var running, end []time.Duration
	for _, each := range timings {
		running, end = append(running, each.running), append(end, each.end)
	}
	t.add(name, "POST to Running, p50 / p99", "%.0f / %.0f ms", millis(percentile(running, 0.5)), millis(percentile(running, 0.99)))
	t.add(name, "POST to the end, p50 / p99", "%.0f / %.0f ms", millis(percentile(end, 0.5)), millis(percentile(end, 0.99)))
	t.add(name, "commits, fsyncs, rows written per run", "%.1f, %.2f, %.0f", float64(written[0])/float64(runs), float64(written[1])/float64(runs), float64(written[2])/float64(runs))
	if after, err := usageOf(c.command.Process.Pid); err == nil && procErr == nil {
		t.add(name, "CPU of the stack per run", "%.2f ms", millis(after.cpu-before.cpu)/float64(runs))
	}
	return nil
}

// written returns the stack's writes since the previous call: changes, commits, bytes.
func (c *child) written() (figures [3]int64, err error) {
	if err := c.command.Process.Signal(syscall.SIGHUP); err != nil {
		return figures, err
	}
	text, err := c.line()
	if err != nil {
		return figures, err
	}
	_, err = fmt.Sscan(text, &figures[0], &figures[1], &figures[2])
	return figures, err
}

// timing has the durations of one run, counted from its POST.
type timing struct{ running, end time.Duration }

// starter starts a run and returns its status.
type starter func(ctx context.Context) (status, error)

// exports returns a starter of exports.
func exports(url string) starter {
	return func(ctx context.Context) (status, error) { return export(ctx, url) }
}

func manyRuns(ctx context.Context, url string, runs int) ([]timing, error) {
	return startMany(ctx, runs, inFlight, exports(url))
}

// startMany starts runs with concurrent clients and follows each to its end.
func startMany(ctx context.Context, runs, clients int, start starter) ([]timing, error) {
	timings := make([]timing, runs)
	next := make(chan int)
	var working sync.WaitGroup
	var mu sync.Mutex
	var failure error
	for range clients {
		working.Go(func() {
			for i := range next {
				var err error
				if timings[i], err = oneRun(ctx, start); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
				}
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	working.Wait()
	return timings, failure
}

// status has the fields of GET /status that the figures need.
type status struct {
	TaskID      string `json:"task_id"`
	Status      string
	State       string
	Error       string
	CreatedAt   time.Time
	StartedAt   time.Time
	CompletedAt time.Time

	// url and token are used for the next request.
	url, token string
}

// oneRun starts a run and follows it to its end. It reads the time at which the run was Running
// from the run's events.
func oneRun(ctx context.Context, start starter) (timing, error) {
	startedAt := time.Now()
	s, err := start(ctx)
	for err == nil && s.Status == "processing" {
		err = requestAs(ctx, s.token, http.MethodGet, s.url+"/status/"+s.TaskID+"?wait=20", "", &s)
	}
	if err == nil && s.Status != "success" {
		err = fmt.Errorf("a run ended as %s: %s", s.State, s.Error)
	}
	return timing{s.StartedAt.Sub(startedAt), s.CompletedAt.Sub(startedAt)}, err
}

const exportBody = `{"pi":"01K9XVBAQZF9EHDRXGBEADTZYY"}`

func export(ctx context.Context, url string) (s status, err error) {
	s.url = url
	return s, request(ctx, http.MethodPost, url+"/export/mods", exportBody, &s)
}

func request(ctx context.Context, method, url, body string, into any) error {
	return requestAs(ctx, "", method, url, body, into)
}

// requestAs is like request with a token; empty sends no token.
func requestAs(ctx context.Context, token, method, url, body string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s: %d %.300s", url, answer.StatusCode, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
