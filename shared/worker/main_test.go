package worker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/shared/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAWorkerWithItsOwnClientLeavesNothingBehind: over a real connection; the
// goroutines are counted at the end.
func TestAWorkerWithItsOwnClientLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	var heartbeats atomic.Int64
	heartbeat := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "heartbeat" {
			heartbeats.Add(1)
			heartbeat <- struct{}{}
		}
		_, _ = w.Write([]byte(`{"acknowledged":true,"finalState":"SUCCEEDED"}`))
	}))
	defer server.Close()
	e := envelope()
	e.CallbackBaseURL, e.HeartbeatIntervalMS = server.URL, 1
	err := worker.Run(t.Context(), worker.Assignment{TaskID: e.TaskID, Envelope: &e}, worker.Options{},
		func(ctx context.Context, task *worker.Task) (worker.Result, error) {
			for range 3 {
				<-heartbeat
			}
			if seen, ok := task.Envelope(); !ok || seen.TaskToken != "" || seen.Output != nil || seen.RunID != "run-1" {
				t.Errorf("the work sees %+v", seen)
			}
			return worker.Result{}, ctx.Err()
		})
	if err != nil || heartbeats.Load() < 3 {
		t.Errorf("Run gives %v", err)
	}
}

func TestUsageIsThatOfThisProcess(t *testing.T) {
	t.Parallel()
	u := worker.Usage()
	if u.CPUTimeMS == nil || u.PeakMemoryBytes == nil || *u.PeakMemoryBytes < 1<<20 || *u.PeakMemoryBytes > 1<<40 {
		t.Errorf("the usage is %+v", u)
	}
}

// TestTheFirstSignalClosesTheChannel is not parallel: it signals the process.
func TestTheFirstSignalClosesTheChannel(t *testing.T) { //nolint:paralleltest // it signals the process
	terminated, stop := worker.Terminated()
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-terminated
}

func TestACallerThatGoesAwayIsNotReported(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		ctx, cancel := context.WithCancelCause(s.t.Context())
		gone := errors.New("the caller has gone")
		err := worker.Run(ctx, s.assignment, s.options, func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
			cancel(gone)
			<-ctx.Done()
			return worker.Result{}, context.Cause(ctx)
		})
		if !errors.Is(err, gone) || len(s.plane.of("completed")) != 0 {
			t.Errorf("Run gives %v", err)
		}
	})
}

func BenchmarkProgress(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer server.Close()
	e := envelope()
	e.CallbackBaseURL = server.URL
	task, err := worker.Start(b.Context(), worker.Assignment{TaskID: e.TaskID, Envelope: &e}, worker.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer task.Close()
	b.ReportAllocs()
	for b.Loop() {
		task.Progress(50, "halfway")
	}
}
