package runs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestHeartbeatsAreForwardedAsOftenAsNeeded counts the calls of SendTaskHeartbeat of a
// worker whose interval differs a little. Its execution never times out.
func TestHeartbeatsAreForwardedAsOftenAsNeeded(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		interval, limit time.Duration
		// most is the largest share of heartbeats that is forwarded.
		most float64
	}{
		{30 * time.Second, 90 * time.Second, 0.64},
		{30 * time.Second, time.Minute, 1},
		{30 * time.Second, 10 * time.Minute, 0.13},
		{5 * time.Second, 15 * time.Second, 0.64},
	} {
		for _, drift := range []float64{0.9, 1, 1.1} {
			p := pace{row.interval, row.limit, time.Minute}
			v := watch(t, p)
			v.interval = time.Duration(float64(row.interval) * drift)
			if 2*v.interval > row.limit {
				continue
			}
			forwarded := 0
			v.calls.first = func(call, _ string) {
				if call == "Heartbeat" {
					forwarded++
				}
			}
			v.advance(time.Second)
			v.nextCall = v.clock.now.Add(v.interval)
			v.entered = nil
			const calls = 200
			v.pass(calls * v.interval)
			if share := float64(forwarded) / calls; share > row.most || forwarded == 0 {
				t.Errorf("%s, drift %g: got %d of %d heartbeats forwarded, want at most %g", p, drift, forwarded, calls, row.most)
			}
			if slices.Contains(v.entered, "Reconciling") {
				t.Errorf("%s, drift %g: got states %v, want no timeout", p, drift, v.entered)
			}
		}
	}
}

// TestSweepFindsOverdueHeartbeats forwards no heartbeat: the execution has no heartbeat
// limit, a worker that calls survives, also an outage, and a dead one is detected.
//
// Rule 7 of shared/README.md.
func TestSweepFindsOverdueHeartbeats(t *testing.T) {
	t.Parallel()
	for _, p := range []pace{
		{30 * time.Second, 90 * time.Second, time.Minute},
		{5 * time.Second, 15 * time.Second, time.Minute},
		{2 * time.Second, 6 * time.Second, time.Second},
		{5 * time.Minute, 10 * time.Minute, time.Minute},
	} {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			v := watch(t, p, func(c *runs.Config) { c.ForwardLimit = new(0) })
			v.sweeps = true
			v.calls.first = func(call, _ string) {
				if call == "Heartbeat" {
					t.Error("got a forwarded heartbeat, want none")
				}
			}
			v.pass(3 * p.limit)
			for name, outage := range outages {
				outage(v, p.limit+p.limit/2)
				v.pass(2 * p.limit)
				if r := v.wantState(v.task, run.Running); r.Attempt.Number != 1 {
					t.Fatalf("%s: got attempt %d, want 1 (events %s)", name, r.Attempt.Number, v.eventsOf(v.task))
				}
			}
			if slices.Contains(v.entered, "Reconciling") {
				t.Errorf("got states %v, want no timeout of the execution", v.entered)
			}
			v.silent = true
			v.pass(p.limit - p.interval)
			v.wantState(v.task, run.Running)
			v.pass(p.interval + p.limit + 2*p.sweep + 3*time.Second)
			v.wantEvents(v.task, "zombie_detected attempt_ended:HEARTBEAT_TIMEOUT")
		})
	}
}

// TestForwardingSwitchesBetweenAttempts starts runs below and above the limit. Each attempt
// keeps its mode of forwarding, and a silent worker is detected in both modes.
//
// Rule 7 of shared/README.md.
func TestForwardingSwitchesBetweenAttempts(t *testing.T) {
	t.Parallel()
	h := liveness(t, func(c *runs.Config) { c.ForwardLimit = new(2) })
	tasks := []string{h.post(), h.post(), h.post()}
	h.sweep() // three run
	tasks = append(tasks, h.post())
	forwarded := map[string]bool{}
	var workers []caller
	for i, task := range tasks {
		workers = append(workers, h.worker(h.runner.launched[i]))
		h.ok(workers[i].started(false))
		h.step()
		item, err := h.store.LastHeartbeat(t.Context(), h.record(task).Ref())
		h.ok(err)
		forwarded[task] = item.Token != "" || item.Timeout == 0
	}
	for i, task := range tasks {
		if forwarded[task] != (i < 3) {
			t.Errorf("got forwarded %t for attempt %d, want the first three forwarded", forwarded[task], i+1)
		}
	}
	for _, m := range h.runner.launched[:3] {
		h.ok(h.report(m, success()))
		h.step()
	}
	h.sweep() // one runs
	next := h.post()
	if h.record(next).Attempt.HeartbeatsSwept {
		t.Error("got an attempt whose heartbeats are not forwarded, want one below the limit")
	}
	for range 14 {
		h.advanceReachable(10 * time.Second)
		h.sweep()
	}
	h.wantEvents(tasks[3], "zombie_detected attempt_ended:HEARTBEAT_TIMEOUT")
}
