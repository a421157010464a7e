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

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/worker"
)

func TestATaskIsStartedHeardOfAndCompleted(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		begun := time.Now()
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
		if started.Attempt != 2 || started.WorkerID != "worker-1" || !started.StartedAt.Equal(begun) || !started.HandlesSigterm {
			t.Errorf("started is %+v", started)
		}
		heartbeats := s.plane.of("heartbeat")
		if len(heartbeats) != 3 {
			t.Fatalf("%d heartbeats in 100 s, want 3", len(heartbeats))
		}
		for i, b := range heartbeats {
			heartbeat := as[contract.TaskHeartbeat](t, b)
			if !b.at.Equal(begun.Add(time.Duration(i+1)*30*time.Second)) || !heartbeat.HeartbeatAt.Equal(b.at) || *heartbeat.ProgressPct != 45 || heartbeat.Message == "" {
				t.Errorf("heartbeat %d came after %s: %s", i, b.at.Sub(begun), b.body)
			}
		}
		completed := s.completed()
		if completed.Outcome != "SUCCEEDED" || completed.Attempt != 2 || completed.Error != nil || completed.Output.OutputPath != "exports/task-1/a.xml" {
			t.Errorf("completed is %+v", completed)
		}
		var metrics map[string]int64
		if err := json.Unmarshal(completed.Metrics, &metrics); err != nil {
			t.Fatal(err)
		}
		if metrics["entities_exported"] != 72 || metrics["ioReadBytes"] != 7 || metrics["peakMemoryBytes"] < 1<<20 {
			t.Errorf("the metrics are %s", completed.Metrics)
		}
		for _, c := range append(heartbeats, s.plane.one(t, "completed")) {
			if c.token != firstToken || c.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s has the token %q", c.what, c.token)
			}
		}
	})
}

// TestWorkThatIsNotWantedIsNotBegun: 409 to started, in each of its meanings.
func TestWorkThatIsNotWantedIsNotBegun(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{
		`{"error":"task_already_terminal","state":"CANCELLED"}`: worker.ErrCancelled,
		`{"error":"task_already_terminal","state":"SUCCEEDED"}`: worker.ErrEnded,
		`{"error":"attempt_mismatch","expectedAttempt":3}`:      worker.ErrMismatch,
		`{"error":"worker_mismatch"}`:                           worker.ErrMismatch,
		`no JSON`:                                               worker.ErrMismatch,
	} {
		play(t, func(s *stage) {
			s.plane.on("started", always(http.StatusConflict, body))
			err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
				t.Error("the work was done")
				return worker.Result{}, nil
			})
			if !errors.Is(err, want) || len(s.plane.of("completed")) != 0 {
				t.Errorf("%s gives %v", body, err)
			}
		})
	}
}

func TestWorkBeginsWhenTheControlPlaneIsBack(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
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
			t.Errorf("%d tries, the third %s after the second", len(tries), tries[2].at.Sub(tries[1].at))
		}
	})
}

func TestAStartThatIsRefusedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.plane.on("started", always(http.StatusForbidden, ""))
		if err := s.run(lasting(0)); err == nil || !strings.Contains(err.Error(), "403 Forbidden") || len(s.plane.of("started")) != 1 {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestAFailureSaysItsCategory: what a function returns is what is reported.
func TestAFailureSaysItsCategory(t *testing.T) {
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
		play(t, func(s *stage) {
			err := s.run(func(context.Context, *worker.Task) (worker.Result, error) { return worker.Result{}, row.err })
			if !errors.Is(err, row.err) {
				t.Errorf("%s: Run gives %v", name, err)
			}
			got := s.completed()
			if got.Outcome != "FAILED" || got.Error.Category != row.want.Category || got.Error.Message != row.want.Message ||
				(got.Error.Retryable == nil) != (row.want.Retryable == nil) {
				t.Errorf("%s: %+v", name, got.Error)
			}
		})
	}
}

func TestAPanicIsAFailureWithItsStack(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		if err := s.run(func(context.Context, *worker.Task) (worker.Result, error) { panic("boom") }); err == nil {
			t.Error("Run gives no error")
		}
		if e := s.completed().Error; e.Category != "USER_CODE" || e.Message != "panic: boom" || !strings.Contains(e.StackTrace, "run_test.go") {
			t.Errorf("the error is %+v", e)
		}
	})
}

func TestALongMessageIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		_ = s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{}, errors.New(strings.Repeat("é", 5000))
		})
		if m := s.completed().Error.Message; len(m) > 2048 || len(m) < 2040 || !strings.HasSuffix(m, "é [cut]") {
			t.Errorf("the message has %d bytes and ends in %q", len(m), m[len(m)-12:])
		}
	})
}

func TestMetricsThatAreNoneLoseNoResult(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{Metrics: []int{1}}, nil
		})
		if err != nil || s.completed().Outcome != "SUCCEEDED" {
			t.Errorf("Run gives %v", err)
		}
	})
}
