package worker_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/worker"
)

const wished = `{"acknowledged":true,"shouldCancel":true,"cancelReason":"user_requested"}`

func TestACancelEndsTheWorkAndIsReported(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.plane.on("heartbeat", func(n int) *http.Response {
			if n == 0 {
				return reply(http.StatusOK, "{}")
			}
			return reply(http.StatusOK, wished)
		})
		begun := time.Now()
		err := s.run(func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			task.Phase("uploading")
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, worker.ErrCancelled) || cause.Error() != "the task is cancelled: user_requested" {
				t.Errorf("the cause is %v", cause)
			}
			return worker.Result{PartialProgress: map[string]int{"recordsProcessed": 5}}, context.Cause(ctx)
		})
		if !errors.Is(err, worker.ErrCancelled) || time.Since(begun) != time.Minute {
			t.Errorf("Run gives %v after %s", err, time.Since(begun))
		}
		got := s.completed()
		if got.Outcome != "CANCELLED" || got.CancelledDuringPhase != "uploading" || string(got.PartialProgress) != `{"recordsProcessed":5}` || got.Error != nil {
			t.Errorf("completed is %+v", got)
		}
	})
}

// TestWorkThatIsDoneInSpiteOfACancelIsASuccess: the control plane decides.
func TestWorkThatIsDoneInSpiteOfACancelIsASuccess(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.plane.on("heartbeat", always(http.StatusOK, wished))
		s.plane.on("completed", always(http.StatusOK, `{"acknowledged":true,"finalState":"CANCELLED"}`))
		err := s.run(func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
			<-ctx.Done()
			return worker.Result{}, nil
		})
		if err != nil || s.completed().Outcome != "SUCCEEDED" {
			t.Errorf("Run gives %v", err)
		}
	})
}

func TestHeartbeatsGoOnWhileTheWorkCleansUp(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.assignment.Envelope.CancelGracePeriodMS = 200_000
		s.plane.on("heartbeat", always(http.StatusOK, wished))
		_ = s.run(func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
			<-ctx.Done()
			<-time.After(100 * time.Second)
			return worker.Result{}, ctx.Err()
		})
		if n := len(s.plane.of("heartbeat")); n != 4 {
			t.Errorf("%d heartbeats in 130 s, want 4", n)
		}
	})
}

// TestNothingIsReportedThatNobodyHears: after 410 and 409 the work ends at once.
func TestNothingIsReportedThatNobodyHears(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{http.StatusGone: worker.ErrExpired, http.StatusConflict: worker.ErrMismatch} {
		play(t, func(s *stage) {
			s.plane.on("heartbeat", always(status, `{"error":"task_expired"}`))
			begun := time.Now()
			err := s.run(lasting(time.Hour))
			if !errors.Is(err, want) || time.Since(begun) != 30*time.Second || len(s.plane.of("completed")) != 0 || len(s.plane.of("heartbeat")) != 1 {
				t.Errorf("%d: Run gives %v after %s", status, err, time.Since(begun))
			}
		})
	}
}

// TestSIGTERMIsACancelWhereOneIsWished: a heartbeat asks at once.
func TestSIGTERMIsACancelWhereOneIsWished(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.plane.on("heartbeat", func(n int) *http.Response {
			if n == 0 {
				return reply(http.StatusBadGateway, "")
			}
			return reply(http.StatusOK, wished)
		})
		time.AfterFunc(10*time.Second, s.terminate)
		begun := time.Now()
		err := s.run(lasting(time.Hour))
		if !errors.Is(err, worker.ErrTerminated) || time.Since(begun) > 11*time.Second {
			t.Errorf("Run gives %v after %s", err, time.Since(begun))
		}
		if got := s.completed(); got.Outcome != "CANCELLED" {
			t.Errorf("completed is %+v", got)
		}
	})
}

// TestAMachineThatIsStoppedReportsNothing: its end says enough, whether the
// control plane answers or not.
func TestAMachineThatIsStoppedReportsNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(int) *http.Response{
		"no wish": always(http.StatusOK, "{}"), "down": func(int) *http.Response { return nil }, "silent": always(hang, ""),
	} {
		play(t, func(s *stage) {
			s.plane.on("heartbeat", answer)
			time.AfterFunc(10*time.Second, s.terminate)
			begun := time.Now()
			err := s.run(lasting(time.Hour))
			if !errors.Is(err, worker.ErrTerminated) || len(s.plane.of("completed")) != 0 || time.Since(begun) > 13*time.Second {
				t.Errorf("%s: Run gives %v after %s", name, err, time.Since(begun))
			}
		})
	}
}

func TestSIGTERMBeforeTheStartIsHeard(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.plane.on("started", always(http.StatusBadGateway, ""))
		time.AfterFunc(10*time.Second, s.terminate)
		if err := s.run(lasting(time.Hour)); !errors.Is(err, worker.ErrTerminated) {
			t.Errorf("Run gives %v", err)
		}
	})
}

// TestTheDeadlineIsATimeoutThatTheWorkerReports: as is the time limit, whichever
// comes first.
func TestTheDeadlineIsATimeoutThatTheWorkerReports(t *testing.T) {
	t.Parallel()
	for _, limits := range [][2]time.Duration{{10 * time.Minute, 0}, {10 * time.Minute, time.Hour}, {0, 10 * time.Minute}, {time.Hour, 10 * time.Minute}} {
		testDeadline(t, limits[0], limits[1])
	}
}

func testDeadline(t *testing.T, deadline, limit time.Duration) {
	t.Helper()
	play(t, func(s *stage) {
		if deadline > 0 {
			s.assignment.Envelope.Deadline = time.Now().Add(deadline)
		}
		s.assignment.Envelope.Resources.TimeoutMS = limit.Milliseconds()
		begun := time.Now()
		err := s.run(lasting(time.Hour))
		if !errors.Is(err, worker.ErrDeadline) || time.Since(begun) != 10*time.Minute-5*time.Second {
			t.Errorf("Run gives %v after %s", err, time.Since(begun))
		}
		if e := s.completed().Error; e.Category != contract.CategoryTimeout || e.Message != "the attempt reached its deadline" {
			t.Errorf("the error is %+v", e)
		}
	})
}

// TestDeafWorkIsGivenUpBeforeTheGraceIsOver: a cancel is reported for it.
func TestDeafWorkIsGivenUpBeforeTheGraceIsOver(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.plane.on("heartbeat", always(http.StatusOK, wished))
		release := make(chan struct{})
		begun := time.Now()
		err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			<-release
			return worker.Result{}, nil
		})
		close(release)
		if !errors.Is(err, worker.ErrCancelled) || time.Since(begun) != 54*time.Second || s.completed().Outcome != "CANCELLED" {
			t.Errorf("Run gives %v after %s", err, time.Since(begun))
		}
	})
}

// TestDeafWorkIsGivenUpBeforeTheDeadline: what is left of the time is short.
func TestDeafWorkIsGivenUpBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		s.assignment.Envelope.Deadline = time.Now().Add(10 * time.Minute)
		release := make(chan struct{})
		begun := time.Now()
		err := s.run(func(context.Context, *worker.Task) (worker.Result, error) {
			<-release
			return worker.Result{}, nil
		})
		close(release)
		if !errors.Is(err, worker.ErrDeadline) || time.Since(begun) != 10*time.Minute-time.Second || s.completed().Error.Category != contract.CategoryTimeout {
			t.Errorf("Run gives %v after %s", err, time.Since(begun))
		}
	})
}
