package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestTaskSendsStartedHeartbeatsAndCompleted(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		start := time.Now()
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			task.Progress(45, "Processing partition 5 of 10")
			if _, err := lasting(100*time.Second)(ctx, task); err != nil {
				return worker.Result{}, err
			}
			return worker.Result{
				Output:  &contract.TaskOutput{OutputPath: "exports/task-1/a.xml"},
				Metrics: map[string]int{"entities_exported": 72, "ioReadBytes": 7},
			}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		started := as[contract.TaskStarted](t, s.plane.one(t, "started"))
		if started.Attempt != 2 || started.WorkerID != "worker-1" || !started.StartedAt.Equal(start) || !started.HandlesSigterm {
			t.Errorf("got started %+v, want attempt 2 of worker-1 at %s with handlesSigterm", started, start)
		}
		heartbeats := s.plane.of("heartbeat")
		if len(heartbeats) != 4 {
			t.Fatalf("got %d heartbeats in 100 s, want one with the progress and 3 at the interval", len(heartbeats))
		}
		for i, b := range heartbeats {
			heartbeat, want := as[contract.TaskHeartbeat](t, b), time.Second+time.Duration(i)*30*time.Second
			if b.at.Sub(start) != want || !heartbeat.HeartbeatAt.Equal(b.at) || *heartbeat.ProgressPct != 45 || heartbeat.Message == "" {
				t.Errorf("heartbeat %d: got %s after %s, want 45 %% after %s", i, b.body, b.at.Sub(start), want)
			}
		}
		completed := s.completed()
		if completed.Outcome != "SUCCEEDED" || completed.Attempt != 2 || completed.Error != nil || completed.Output.OutputPath != "exports/task-1/a.xml" {
			t.Errorf("got completed %+v, want SUCCEEDED of attempt 2 with a.xml", completed)
		}
		var metrics map[string]int64
		if err := json.Unmarshal(completed.Metrics, &metrics); err != nil {
			t.Fatal(err)
		}
		if metrics["entities_exported"] != 72 || metrics["ioReadBytes"] != 7 || metrics["peakMemoryBytes"] < 1<<20 {
			t.Errorf("got metrics %s, want 72 entities, 7 bytes read and the memory", completed.Metrics)
		}
		for _, c := range append(heartbeats, s.plane.one(t, "completed")) {
			if c.token != firstToken || c.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: got token %q, want %q with JSON", c.what, c.token, firstToken)
			}
		}
	})
}

func TestConflictAtStartPreventsTheWork(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{
		`{"error":"task_already_terminal","state":"CANCELLED"}`: worker.ErrCancelled,
		`{"error":"task_already_terminal","state":"SUCCEEDED"}`: worker.ErrEnded,
		`{"error":"attempt_mismatch","expectedAttempt":3}`:      worker.ErrMismatch,
		`{"error":"worker_mismatch"}`:                           worker.ErrMismatch,
		`not JSON`:                                              worker.ErrMismatch,
	} {
		simulate(t, func(s *fixture) {
			s.plane.on("started", always(http.StatusConflict, body))
			err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
				t.Error("got a call of the work, want none")
				return worker.Result{}, nil
			})
			if !errors.Is(err, want) || len(s.plane.of("completed")) != 0 {
				t.Errorf("%s: got %v, want %v", body, err, want)
			}
		})
	}
}

func TestStartedIsRetried(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("started", func(n int) *http.Response {
			switch n {
			case 0:
				return nil
			case 1:
				return reply(http.StatusServiceUnavailable, "", "Retry-After", "40")
			case 2:
				return reply(hang, "")
			}
			return reply(http.StatusOK, "{}")
		})
		if err := s.run(lasting(time.Second)); err != nil {
			t.Fatal(err)
		}
		tries := s.plane.of("started")
		if len(tries) != 4 || tries[2].at.Sub(tries[1].at) != 40*time.Second {
			t.Errorf("got %d calls, the third %s after the second, want 4 and 40 s", len(tries), tries[2].at.Sub(tries[1].at))
		}
	})
}

func TestRefusedStartIsNotRetried(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("started", always(http.StatusForbidden, ""))
		if err := s.run(lasting(0)); err == nil || !strings.Contains(err.Error(), "403 Forbidden") || len(s.plane.of("started")) != 1 {
			t.Errorf("got %v after %d calls, want 403 Forbidden after 1", err, len(s.plane.of("started")))
		}
	})
}

func TestFailureIsReportedWithItsCategory(t *testing.T) {
	t.Parallel()
	no := false
	for name, row := range map[string]struct {
		err  error
		want contract.TaskError
	}{
		"plain":   {errors.New("no column"), contract.TaskError{Category: "USER_CODE", Message: "no column"}},
		"fail":    {worker.Fail("DATA_QUALITY", false, errors.New("bad row")), contract.TaskError{Category: "DATA_QUALITY", Message: "bad row", Retryable: &no}},
		"wrapped": {fmt.Errorf("read: %w", worker.Fail("INFRASTRUCTURE", false, errors.New("down"))), contract.TaskError{Category: "INFRASTRUCTURE", Message: "read: down", Retryable: &no}},
		"disk":    {fmt.Errorf("write: %w", syscall.ENOSPC), contract.TaskError{Category: "INFRASTRUCTURE", Message: "write: no space left on device"}},
		"time":    {context.DeadlineExceeded, contract.TaskError{Category: "TIMEOUT", Message: "context deadline exceeded"}},
	} {
		simulate(t, func(s *fixture) {
			err := s.run(func(context.Context, *worker.Task) (worker.Result, error) { return worker.Result{}, row.err })
			if !errors.Is(err, row.err) {
				t.Errorf("%s: got %v, want %v", name, err, row.err)
			}
			got := s.completed()
			if got.Outcome != "FAILED" || got.Error.Category != row.want.Category || got.Error.Message != row.want.Message ||
				(got.Error.Retryable == nil) != (row.want.Retryable == nil) {
				t.Errorf("%s: got %+v, want %+v", name, got.Error, row.want)
			}
		})
	}
}

func TestPanicIsAFailureWithStackTrace(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		if err := s.run(func(context.Context, *worker.Task) (worker.Result, error) { panic("boom") }); err == nil {
			t.Error("got no error, want the panic")
		}
		if e := s.completed().Error; e.Category != "USER_CODE" || e.Message != "panic: boom" || !strings.Contains(e.StackTrace, "run_test.go") {
			t.Errorf("got %+v, want USER_CODE with the panic and its stack", e)
		}
	})
}

func TestLongMessageIsCutAndMarked(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		_ = s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{}, errors.New(strings.Repeat("é", 5000))
		})
		if m := s.completed().Error.Message; len(m) > 2048 || len(m) < 2040 || !strings.HasSuffix(m, "é [cut]") {
			t.Errorf("got %d bytes ending in %q, want 2040 to 2048 ending in %q", len(m), m[len(m)-12:], "é [cut]")
		}
	})
}

func TestInvalidMetricsAreLeftOut(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{Metrics: []int{1}}, nil
		})
		if err != nil || s.completed().Outcome != "SUCCEEDED" {
			t.Errorf("got %v with outcome %s, want SUCCEEDED", err, s.completed().Outcome)
		}
	})
}
