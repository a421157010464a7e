package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestFullHistoryIsHandedOver keeps a run in each loop of the state machine until
// its executions would exceed their history of 300 events. New executions continue
// the run; none is lost, and none counts as the restart.
//
// Rule 15 of shared/README.md.
func TestFullHistoryIsHandedOver(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		policy func(*spec.Policy)
		lasts  time.Duration
		begin  func(h *fixture) (task string)
		end    func(h *fixture)
		state  run.State
		code   fault.Code
	}{
		"create calls without an answer": {
			policy: func(p *spec.Policy) { p.StartTimeout, p.Retry.MaxFurtherStarts = time.Hour, 0 },
			lasts:  65 * time.Minute,
			begin: func(h *fixture) string {
				var lose func(*machine) error
				lose = func(m *machine) error {
					m.Phase, h.runner.during = port.MachineGone, lose
					return fault.New(fault.Unavailable, "no answer")
				}
				h.runner.during = lose
				return h.post()
			},
			state: run.Failed, code: fault.StartTimeout,
		},
		"heartbeat limits while the sweep is down": {
			policy: func(p *spec.Policy) {
				p.TimeLimit, p.HeartbeatInterval, p.HeartbeatTimeout = time.Hour, time.Second, 2*time.Second
			},
			lasts: 3 * time.Minute,
			begin: func(h *fixture) string {
				task := h.post()
				h.ok(h.worker(h.runner.last()).started(false))
				return task
			},
			end:   func(h *fixture) { h.ok(h.report(h.runner.last(), success())) },
			state: run.Completed,
		},
		"failed calls": {
			policy: func(p *spec.Policy) { p.TimeLimit = 24 * time.Hour },
			lasts:  45 * time.Minute,
			begin: func(h *fixture) string {
				h.fail[run.StepRunning] = slices.Repeat([]string{"Lambda.Unknown"}, 40)
				return h.post()
			},
			end:   func(h *fixture) { h.ok(h.report(h.runner.last(), success())) },
			state: run.Completed,
		},
		"retries of a Task": {
			policy: func(p *spec.Policy) { p.Retry.MaxAttempts = 1 },
			lasts:  90 * time.Minute,
			begin: func(h *fixture) string {
				task := h.post()
				h.outputs.away = true
				h.ok(h.report(h.runner.last(), h.upload(h.runner.last(), "<out/>", 6)))
				return task
			},
			end:   func(h *fixture) { h.outputs.away = false },
			state: run.Completed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) {
				c.MaxEvents = 300
				row.policy(&c.Policy)
			})
			task := row.begin(h)
			h.advance(row.lasts)
			if row.end != nil {
				row.end(h)
				h.advance(2 * time.Minute)
			}
			r := h.wantState(task, row.state)
			if r.Fault != nil && r.Fault.Code != row.code {
				t.Errorf("got fault %s, want %q", r.Fault.Code, row.code)
			}
			if r.Execution.HandOvers < 2 || strings.Contains(h.eventsOf(task), "restarted") {
				t.Errorf("got %d hand-overs and events %s, want at least 2 and no restart", r.Execution.HandOvers, h.eventsOf(task))
			}
			for start := 1; start <= r.Execution.Start; start++ {
				if x := h.execution(task, start); x.Status != port.ExecutionSucceeded {
					t.Errorf("execution %d: got %s (%s), want %s", start, x.Status, x.Cause, port.ExecutionSucceeded)
				}
			}
		})
	}
}

// TestReplacedExecutionIsStopped lets a replaced execution enter token states. It
// is stopped and changes nothing.
//
// Rule 15 of shared/README.md.
func TestReplacedExecutionIsStopped(t *testing.T) {
	t.Parallel()
	for step, enter := range map[run.Step]func(h *fixture, in runs.StepInput) error{
		run.StepQueued:            func(h *fixture, in runs.StepInput) error { return h.service.AwaitSlot(h.Context(), in) },
		run.StepContainerCreating: func(h *fixture, in runs.StepInput) error { return h.service.Launch(h.Context(), in) },
		run.StepRunning:           func(h *fixture, in runs.StepInput) error { return h.service.Supervise(h.Context(), in) },
		run.StepCancelling:        func(h *fixture, in runs.StepInput) error { return h.service.StopWorker(h.Context(), in) },
	} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			r := h.record(task)
			for range 30 { // more events than a history has before it is handed over
				d, err := run.Decide(r, run.Visited{Fact: run.TokenStored{
					Step: run.StepRunning, Generation: r.Wait.Generation, Token: "t" + r.Wait.Token,
				}, Retries: 100}, h.clock.now)
				h.ok(err)
				h.ok(h.store.Commit(t.Context(), port.WriteOf(d)))
				r = h.record(task)
			}
			_, err := h.service.Reconcile(t.Context(), runs.StepInput{
				Ref: r.Ref(), Execution: run.ExecutionName(r.Ref(), 1), Carried: runs.Carried{Generation: r.Wait.Generation},
			})
			h.ok(err)
			before := h.record(task)
			h.ok(enter(h, runs.StepInput{
				Ref: r.Ref(), Step: step, Execution: run.ExecutionName(r.Ref(), 1), Generation: before.Wait.Generation, Token: "token",
			}))
			h.equal(before, h.record(task))
			if x := h.execution(task, 1); before.Execution.Start != 2 || x.Status != port.ExecutionAborted {
				t.Errorf("got start %d and the first execution %s, want 2 and %s", before.Execution.Start, x.Status, port.ExecutionAborted)
			}
		})
	}
}
