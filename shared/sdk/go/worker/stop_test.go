package worker_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const cancelAnswer = `{"acknowledged":true,"shouldCancel":true,"cancelReason":"user_requested"}`

func TestCancelEndsTheWorkAndIsReported(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("heartbeat", func(n int) *http.Response {
			if n == 0 {
				return reply(http.StatusOK, "{}")
			}
			return reply(http.StatusOK, cancelAnswer)
		})
		start := time.Now()
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			task.Phase("uploading")
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, worker.ErrCancelled) || cause.Error() != "the task is cancelled: user_requested" {
				t.Errorf("got cause %v, want ErrCancelled with the reason", cause)
			}
			return worker.Result{PartialProgress: map[string]int{"recordsProcessed": 5}}, context.Cause(ctx)
		})
		if !errors.Is(err, worker.ErrCancelled) || time.Since(start) != time.Minute {
			t.Errorf("got %v after %s, want ErrCancelled after 1m", err, time.Since(start))
		}
		got := s.completed()
		if got.Outcome != "CANCELLED" || got.CancelledDuringPhase != "uploading" || string(got.PartialProgress) != `{"recordsProcessed":5}` || got.Error != nil {
			t.Errorf("got completed %+v, want CANCELLED", got)
		}
	})
}

// TestSuccessIsReportedAfterCancel checks that a success is reported after a cancel request.
// The control plane decides which of the two applies.
func TestSuccessIsReportedAfterCancel(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("heartbeat", always(http.StatusOK, cancelAnswer))
		s.plane.on("completed", always(http.StatusOK, `{"acknowledged":true,"finalState":"CANCELLED"}`))
		err := s.run(func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
			<-ctx.Done()
			return worker.Result{}, nil
		})
		if err != nil || s.completed().Outcome != "SUCCEEDED" {
			t.Errorf("got %v with outcome %s, want SUCCEEDED", err, s.completed().Outcome)
		}
	})
}

func TestHeartbeatsContinueDuringCleanup(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.assignment.Envelope.CancelGracePeriodMS = 200_000
		s.plane.on("heartbeat", always(http.StatusOK, cancelAnswer))
		_ = s.run(func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
			<-ctx.Done()
			<-time.After(100 * time.Second)
			return worker.Result{}, ctx.Err()
		})
		if n := len(s.plane.of("heartbeat")); n != 4 {
			t.Errorf("got %d heartbeats in 130 s, want 4", n)
		}
	})
}

func TestWorkAbortsOn409And410(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{http.StatusGone: worker.ErrExpired, http.StatusConflict: worker.ErrMismatch} {
		simulate(t, func(s *fixture) {
			s.plane.on("heartbeat", always(status, `{"error":"task_expired"}`))
			start := time.Now()
			err := s.run(lasting(time.Hour))
			if !errors.Is(err, want) || time.Since(start) != 30*time.Second || len(s.plane.of("completed")) != 0 || len(s.plane.of("heartbeat")) != 1 {
				t.Errorf("%d: got %v after %s, want %v after 30s and nothing reported", status, err, time.Since(start), want)
			}
		})
	}
}

// TestSIGTERMAfterCancelRequestIsACancel checks that a heartbeat is sent at once after SIGTERM.
// Its response contains the cancel request.
func TestSIGTERMAfterCancelRequestIsACancel(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("heartbeat", func(n int) *http.Response {
			if n == 0 {
				return reply(http.StatusBadGateway, "")
			}
			return reply(http.StatusOK, cancelAnswer)
		})
		time.AfterFunc(10*time.Second, s.terminate)
		start := time.Now()
		err := s.run(lasting(time.Hour))
		if !errors.Is(err, worker.ErrTerminated) || time.Since(start) > 11*time.Second {
			t.Errorf("got %v after %s, want ErrTerminated after at most 11s", err, time.Since(start))
		}
		if got := s.completed(); got.Outcome != "CANCELLED" {
			t.Errorf("got completed %+v, want CANCELLED", got)
		}
	})
}

func TestSIGTERMWithoutCancelRequestIsNotReported(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(int) *http.Response{
		"no cancel request": always(http.StatusOK, "{}"), "unreachable": func(int) *http.Response { return nil }, "no answer": always(hang, ""),
	} {
		simulate(t, func(s *fixture) {
			s.plane.on("heartbeat", answer)
			time.AfterFunc(10*time.Second, s.terminate)
			start := time.Now()
			err := s.run(lasting(time.Hour))
			if !errors.Is(err, worker.ErrTerminated) || len(s.plane.of("completed")) != 0 || time.Since(start) > 13*time.Second {
				t.Errorf("%s: got %v after %s, want ErrTerminated after at most 13s and nothing reported", name, err, time.Since(start))
			}
		})
	}
}

func TestSIGTERMEndsTheRetriesOfStarted(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("started", always(http.StatusBadGateway, ""))
		time.AfterFunc(10*time.Second, s.terminate)
		if err := s.run(lasting(time.Hour)); !errors.Is(err, worker.ErrTerminated) {
			t.Errorf("got %v, want ErrTerminated", err)
		}
	})
}

// TestDeadlineIsReportedAsTimeout checks that the deadline or the time limit applies, whichever
// comes first.
func TestDeadlineIsReportedAsTimeout(t *testing.T) {
	t.Parallel()
	for _, limits := range [][2]time.Duration{{10 * time.Minute, 0}, {10 * time.Minute, time.Hour}, {0, 10 * time.Minute}, {time.Hour, 10 * time.Minute}} {
		testDeadline(t, limits[0], limits[1])
	}
}

func testDeadline(t *testing.T, deadline, limit time.Duration) {
	t.Helper()
	simulate(t, func(s *fixture) {
		if deadline > 0 {
			s.assignment.Envelope.Deadline = time.Now().Add(deadline)
		}
		s.assignment.Envelope.Resources.TimeoutMS = limit.Milliseconds()
		start := time.Now()
		err := s.run(lasting(time.Hour))
		if !errors.Is(err, worker.ErrDeadline) || time.Since(start) != 10*time.Minute-5*time.Second {
			t.Errorf("got %v after %s, want ErrDeadline after 9m55s", err, time.Since(start))
		}
		if e := s.completed().Error; e.Category != contract.CategoryTimeout || e.Message != "the attempt reached its deadline" {
			t.Errorf("got error %+v, want TIMEOUT", e)
		}
	})
}

// TestDeadlineDuringStartedIsReported uses a first call that takes longer than the attempt.
// Without a report, the control plane could not distinguish the timeout from an end of the
// program.
func TestDeadlineDuringStartedIsReported(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.assignment.Envelope.Resources.TimeoutMS = (3 * time.Second).Milliseconds()
		s.plane.on("started", func(n int) *http.Response {
			if n < 4 {
				return reply(http.StatusBadGateway, "")
			}
			return reply(http.StatusOK, "{}")
		})
		start := time.Now()
		if err := s.run(lasting(time.Hour)); !errors.Is(err, worker.ErrDeadline) || time.Since(start) < 3*time.Second {
			t.Errorf("got %v after %s, want ErrDeadline after the answer", err, time.Since(start))
		}
		if e := s.completed().Error; e == nil || e.Category != contract.CategoryTimeout {
			t.Errorf("got error %+v, want TIMEOUT", e)
		}
	})
}

func TestWorkThatIgnoresCancelIsAbandonedWithinTheGrace(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("heartbeat", always(http.StatusOK, cancelAnswer))
		release := make(chan struct{})
		start := time.Now()
		err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			<-release
			return worker.Result{}, nil
		})
		close(release)
		if !errors.Is(err, worker.ErrCancelled) || time.Since(start) != 54*time.Second || s.completed().Outcome != "CANCELLED" {
			t.Errorf("got %v after %s, want ErrCancelled after 54s", err, time.Since(start))
		}
	})
}

func TestWorkThatIgnoresTheDeadlineIsAbandonedBeforeIt(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.assignment.Envelope.Deadline = time.Now().Add(10 * time.Minute)
		release := make(chan struct{})
		start := time.Now()
		err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			<-release
			return worker.Result{}, nil
		})
		close(release)
		if !errors.Is(err, worker.ErrDeadline) || time.Since(start) != 10*time.Minute-time.Second || s.completed().Error.Category != contract.CategoryTimeout {
			t.Errorf("got %v after %s, want ErrDeadline after 9m59s", err, time.Since(start))
		}
	})
}
