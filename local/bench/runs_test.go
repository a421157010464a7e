package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/bench"
	"github.com/sortie-dev/sortie/local/flymachines"
	"github.com/sortie-dev/sortie/local/stack"
	"github.com/sortie-dev/sortie/shared/adapter/clock"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// inFlight is how many clients make runs, each one after the other.
const inFlight = 50

var client = &http.Client{Transport: &http.Transport{MaxIdleConns: 500, MaxIdleConnsPerHost: 500}}

// callBack is a worker that does nothing but call back.
func callBack(env map[string]string) {
	body := fmt.Sprintf(`{"task_id":%q,"status":"success"}`, env["TASK_ID"])
	answer, err := client.Post(env["CALLBACK_URL"], "application/json", strings.NewReader(body)) //nolint:noctx // a worker's last call
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}

func settings(b *testing.B) stack.Settings {
	b.Helper()
	s, err := stack.SettingsFrom(func(name string) (string, bool) {
		value, ok := map[string]string{"SORTIE_MAX_MACHINES": "0"}[name]
		return value, ok
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func start(b *testing.B, config stack.Config) *stack.Stack {
	b.Helper()
	config.Addr, config.DataDir, config.Settings = "127.0.0.1:0", b.TempDir(), settings(b)
	config.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	executable, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	config.Executable = []string{executable}
	s, err := stack.Start(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkRuns makes b.N runs through the whole stack, 50 in flight, with a
// durable store and a worker that does nothing but call back.
func BenchmarkRuns(b *testing.B) {
	b.Run("in-process runner", func(b *testing.B) {
		measure(b, start(b, stack.Config{Runner: bench.NewGoroutines(callBack, clock.System{}.Now)}))
	})
	b.Run("fly-go and machines API", func(b *testing.B) {
		measure(b, start(b, stack.Config{Starter: flymachines.Functions{
			Clock: clock.System{},
			Programs: map[string]flymachines.Function{"callback": func(_ context.Context, p flymachines.Program, _ io.Writer) int {
				callBack(p.Env)
				return 0
			}},
		}, Images: map[string][]string{orchestrator.DefaultImage: {"callback"}}}))
	})
}

// timing is how long one run took from its POST.
type timing struct{ running, end time.Duration }

func measure(b *testing.B, s *stack.Stack) {
	b.Helper()
	before, cpu := s.Stats(), cpuTime(b)
	b.ResetTimer()
	began := time.Now()
	timings := make([]timing, b.N)
	next := make(chan int)
	var clients sync.WaitGroup
	for range inFlight {
		clients.Go(func() {
			for i := range next {
				timings[i] = oneRun(b, s.Addresses().URL)
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	clients.Wait()
	b.StopTimer()
	took := time.Since(began)
	after, used, n := s.Stats(), cpuTime(b)-cpu, float64(b.N)
	b.ReportMetric(n/took.Seconds(), "runs/s")
	b.ReportMetric(float64(after.Changes-before.Changes)/n, "commits/run")
	b.ReportMetric(float64(after.Commits-before.Commits)/n, "fsyncs/run")
	b.ReportMetric(float64(after.BytesWritten-before.BytesWritten)/n, "B/run")
	b.ReportMetric(float64(used.Microseconds())/n, "cpu-µs/run")
	report(b, "running", timings, func(t timing) time.Duration { return t.running })
	report(b, "end", timings, func(t timing) time.Duration { return t.end })
}

func report(b *testing.B, what string, timings []timing, of func(timing) time.Duration) {
	b.Helper()
	list := make([]time.Duration, len(timings))
	for i, t := range timings {
		list[i] = of(t)
	}
	slices.Sort(list)
	b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, "p50-ms-to-"+what)
	b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, "p99-ms-to-"+what)
}

// oneRun makes a run and follows it to its end; the record tells when it was
// running.
func oneRun(b *testing.B, url string) timing {
	began := time.Now()
	var accepted struct {
		TaskID string `json:"task_id"`
	}
	request(b, http.MethodPost, url+"/export/mods", `{"pi":"01K9XVBAQZF9EHDRXGBEADTZYY"}`, &accepted)
	for {
		var status struct {
			Status      string
			CreatedAt   time.Time
			StartedAt   time.Time
			CompletedAt time.Time
		}
		request(b, http.MethodGet, url+"/status/"+accepted.TaskID+"?wait=20", "", &status)
		if status.Status == "processing" {
			continue
		}
		if status.Status != "success" {
			b.Errorf("it ended as %+v", status)
		}
		return timing{status.StartedAt.Sub(began), status.CompletedAt.Sub(began)}
	}
}

func request(b *testing.B, method, url, body string, into any) {
	r, err := http.NewRequest(method, url, strings.NewReader(body)) //nolint:noctx // the benchmark's own
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil || answer.StatusCode >= 300 {
		b.Errorf("%s: %d %.300s %v", url, answer.StatusCode, text, err)
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
