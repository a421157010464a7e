package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// at is a call of Progress after a duration.
type at struct {
	after   time.Duration
	percent int
}

// reporting returns work that reports progress at the given times and then waits
// until 59 seconds have passed.
func reporting(steps ...at) worker.Func {
	return func(ctx context.Context, task *worker.Task) (worker.Result, error) {
		start := time.Now()
		for _, step := range steps {
			<-time.After(step.after - time.Since(start))
			task.Progress(step.percent, "working")
		}
		return lasting(59*time.Second-time.Since(start))(ctx, task)
	}
}

func TestProgressIsSentWhenItChanges(t *testing.T) {
	t.Parallel()
	var burst []at // eleven changes a second
	for i := range 20 {
		burst = append(burst, at{10*time.Second + time.Duration(i)*90*time.Millisecond, i})
	}
	for name, row := range map[string]struct {
		steps []at
		want  []string // time and percent of each heartbeat
	}{
		"none":      {nil, []string{"30s -"}},
		"at once":   {[]at{{0, 5}}, []string{"1s 5", "31s 5"}},
		"later":     {[]at{{5 * time.Second, 5}}, []string{"5s 5", "35s 5"}},
		"unchanged": {[]at{{5 * time.Second, 5}, {6 * time.Second, 5}, {40 * time.Second, 5}}, []string{"5s 5", "35s 5"}},
		"coalesced": {burst, []string{"10s 0", "11s 11", "12s 19", "42s 19"}},
		"two":       {[]at{{5 * time.Second, 5}, {5500 * time.Millisecond, 6}}, []string{"5s 5", "6s 6", "36s 6"}},
	} {
		simulate(t, func(s *fixture) {
			start := time.Now()
			if err := s.run(reporting(row.steps...)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range s.plane.of("heartbeat") {
				percent := "-"
				if p := as[contract.TaskHeartbeat](t, r).ProgressPct; p != nil {
					percent = fmt.Sprint(*p)
				}
				got = append(got, fmt.Sprintf("%s %s", r.at.Sub(start), percent))
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("%s: got heartbeats %v, want %v", name, got, row.want)
			}
		})
	}
}

// TestProgressIsNotSentDuringBackoff checks that the delays of the backoff apply, however often
// the progress changes.
func TestProgressIsNotSentDuringBackoff(t *testing.T) {
	t.Parallel()
	simulate(t, func(s *fixture) {
		s.plane.on("heartbeat", func(n int) *http.Response {
			if n == 0 {
				return reply(http.StatusTooManyRequests, "", "Retry-After", "20")
			}
			return reply(http.StatusOK, "{}")
		})
		if err := s.run(reporting(at{time.Second, 1}, at{3 * time.Second, 2}, at{5 * time.Second, 3})); err != nil {
			t.Fatal(err)
		}
		calls := s.plane.of("heartbeat")
		if len(calls) < 2 || calls[1].at.Sub(calls[0].at) != 20*time.Second {
			t.Errorf("got %d heartbeats, want the second 20s after the first", len(calls))
		}
	})
}
