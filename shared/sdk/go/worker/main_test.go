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

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRunWithDefaultClient uses a real connection. TestMain finds goroutines that
// it leaves.
func TestRunWithDefaultClient(t *testing.T) {
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
				t.Errorf("got envelope %+v, want run-1 without secrets", seen)
			}
			return worker.Result{}, ctx.Err()
		})
	if err != nil || heartbeats.Load() < 3 {
		t.Errorf("got %v after %d heartbeats, want no error after 3", err, heartbeats.Load())
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	u := worker.Usage()
	if u.CPUTimeMS == nil || u.PeakMemoryBytes == nil || *u.PeakMemoryBytes < 1<<20 || *u.PeakMemoryBytes > 1<<40 {
		t.Errorf("got %+v, want the CPU time and 1 MiB to 1 TiB of memory", u)
	}
}

func TestTerminatedClosesOnSIGTERM(t *testing.T) { //nolint:paralleltest // it signals the process
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

func TestEndOfCallersContextIsNotReported(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		ctx, cancel := context.WithCancelCause(s.t.Context())
		gone := errors.New("the caller stopped")
		err := worker.Run(ctx, s.assignment, s.options, func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
			cancel(gone)
			<-ctx.Done()
			return worker.Result{}, context.Cause(ctx)
		})
		if !errors.Is(err, gone) || len(s.plane.of("completed")) != 0 {
			t.Errorf("got %v and %d completed, want %v and none", err, len(s.plane.of("completed")), gone)
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
