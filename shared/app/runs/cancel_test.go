package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (h *fixture) cancel(task string) {
	h.Helper()
	_, err := h.service.Cancel(h.Context(), client, task, "user_requested")
	h.ok(err)
}

// startRun stores a run with fields that no handler sets yet, and starts it.
func (h *fixture) startRun(change func(*run.Run)) (task string) {
	h.Helper()
	r := run.Run{
		Tenant: client.Tenant, Workspace: client.Workspace, ID: "a-run", TaskID: "a-run",
		Work: spec.Work{Kind: "export", Format: "mods", Options: []byte(`{}`), Image: "worker"}, Policy: h.config.Policy,
	}
	change(&r)
	d := run.New(r, h.clock.now)
	_, err := h.store.Create(h.Context(), port.WriteOf(d), nil)
	h.ok(err)
	h.ok(h.engine.Start(h.Context(), d.Effects[0].Execution, []byte(`{"tenant":"local","runId":"a-run"}`)))
	h.step()
	return "a-run"
}

// TestCancelWorksInEveryState requests a cancel twice in every state and before
// every step.
//
// Rule 12 of shared/README.md.
func TestCancelWorksInEveryState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		play  func(h *fixture) (task string)
		state run.State
		// code is the run's final fault; empty if the run completes.
		code fault.Code
		// machines is the number of launches.
		machines int
	}{
		"before its execution starts": {func(h *fixture) string {
			h.calls.lostRequests["Start"] = 1
			return h.post()
		}, run.Pending, fault.Cancelled, 0},
		"PreRun": {func(h *fixture) string {
			return h.startRun(func(r *run.Run) { r.ScheduledAt = h.clock.now.Add(time.Hour) })
		}, run.PreRun, fault.Cancelled, 0},
		"while PreRun ends": {func(h *fixture) string {
			task := h.startRun(func(r *run.Run) { r.ScheduledAt = h.clock.now.Add(time.Hour) })
			h.before[run.StepPending] = func(runs.StepInput) { h.cancel(task) }
			h.advance(time.Hour + time.Second)
			return task
		}, run.Cancelled, fault.Cancelled, 0},
		"Queued": {func(h *fixture) string {
			h.config.MaxMachines = 1
			h.wire()
			return h.queue(2)[1]
		}, run.Pending, fault.Cancelled, 1},
		"while its constraints are checked": {func(h *fixture) string {
			h.before[run.StepConditionRunning] = func(in runs.StepInput) { h.cancel(in.ID) }
			return h.startRun(func(r *run.Run) { r.Constraints = &spec.Constraints{RequirePreviousSuccess: true} })
		}, run.Cancelled, fault.Cancelled, 0},
		"before its launch": {func(h *fixture) string {
			h.before[run.StepContainerCreating] = func(in runs.StepInput) { h.cancel(in.ID) }
			return h.post()
		}, run.Cancelled, fault.Cancelled, 0},
		"during its launch": {func(h *fixture) string {
			h.runner.during = func(m *machine) error { h.cancel(m.Owner.RunID); return nil }
			return h.post()
		}, run.Cancelled, fault.Cancelled, 1},
		"ContainerCreating": {func(h *fixture) string {
			h.runner.stuck = true
			return h.post()
		}, run.ContainerCreating, fault.Cancelled, 1},
		"BackingOff": {func(h *fixture) string {
			h.runner.during = func(m *machine) error {
				m.exit(0)
				return fault.New(fault.Capacity, "no room")
			}
			return h.post()
		}, run.ContainerCreating, fault.Cancelled, 1},
		"Queued after a throttled start": {func(h *fixture) string {
			h.limitStarts(0)
			return h.post()
		}, run.ContainerCreating, fault.Cancelled, 0},
		"Running": {func(h *fixture) string { return h.post() }, run.Running, fault.Cancelled, 1},
		"Running and ignoring SIGTERM": {func(h *fixture) string {
			h.runner.ignoresSIGTERM = true
			return h.post()
		}, run.Running, fault.CancelTimeout, 1},
		"while Running is entered": {func(h *fixture) string {
			h.before[run.StepRunning] = func(in runs.StepInput) { h.cancel(in.ID) }
			return h.post()
		}, run.Running, fault.Cancelled, 1},
		"Terminating with a failure": {func(h *fixture) string {
			h.before[run.StepTerminating] = func(in runs.StepInput) { h.cancel(in.ID) }
			task := h.post()
			h.runner.last().exit(1)
			h.sweep()
			return task
		}, run.Cancelled, fault.Cancelled, 1},
		"Retrying": {func(h *fixture) string {
			task := h.post()
			h.runner.last().exit(1)
			h.sweep()
			return task
		}, run.Retrying, fault.Cancelled, 1},
		"Completed": {func(h *fixture) string {
			task := h.post()
			h.ok(h.report(h.runner.last(), success()))
			h.step()
			return task
		}, run.Completed, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := test.play(h)
			h.wantState(task, test.state)
			h.cancel(task)
			h.cancel(task)
			h.step()
			h.sweep()
			h.advance(11 * time.Second)
			h.advance(31 * time.Second)
			h.sweep()
			want := run.Cancelled
			switch test.code {
			case "":
				want = run.Completed
			case fault.CancelTimeout:
				want = run.Failed
			}
			r := h.wantState(task, want)
			if test.code != "" && r.Fault.Code != test.code {
				t.Errorf("got fault %+v, want %s", r.Fault, test.code)
			}
			h.wantExecutionEnded(task)
			if len(h.runner.launched) != test.machines {
				t.Errorf("got %d machines launched, want %d", len(h.runner.launched), test.machines)
			}
			if name != "Queued" && h.runner.live() != 0 {
				t.Errorf("got %d live machines, want 0", h.runner.live())
			}
			if len(h.outputs.buckets[port.Uploads])+len(h.outputs.buckets[port.Accepted]) != 0 {
				t.Errorf("got outputs %v, want empty buckets", h.outputs.buckets)
			}
		})
	}
}

// TestReportAfterCancelIsAccepted reports after a cancel request: the output is
// discarded, and a contradiction is refused.
//
// Rule 12 of shared/README.md.
func TestReportAfterCancelIsAccepted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.ignoresSIGTERM = true
	task := h.post()
	m := h.runner.last()
	body := h.upload(m, "<out/>", 6)
	h.cancel(task)
	h.step()
	if len(h.runner.stopped) != 1 {
		t.Errorf("got SIGTERM sent to %v, want one machine", h.runner.stopped)
	}
	h.ok(h.report(m, body))
	h.step()
	h.wantState(task, run.Cancelled)
	h.ok(h.report(m, body))
	if err := h.report(m, contract.Callback{Status: contract.StatusError, Error: "no"}); !fault.Is(err, fault.TaskAlreadyTerminal) {
		t.Errorf("got %v for a contradicting report, want %s", err, fault.TaskAlreadyTerminal)
	}
	if _, err := h.service.Output(h.Context(), client, task); !fault.Is(err, fault.NotReady) {
		t.Errorf("got %v for the output, want %s", err, fault.NotReady)
	}
	if len(h.outputs.buckets[port.Uploads])+len(h.outputs.buckets[port.Accepted]) != 0 {
		t.Errorf("got outputs %v, want empty buckets", h.outputs.buckets)
	}
}

// TestCancelIsDeliveredBeforeSigterm delivers the cancel request in the answer to
// the next call, which starts the grace period. SIGTERM follows after five sixths
// of it, the kill at its end.
//
// Rule 12 of shared/README.md.
func TestCancelIsDeliveredBeforeSigterm(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		sigterm bool
		// calls is the time from the cancel request to the worker's next call; 0 is never.
		calls time.Duration
		// term is the time from the cancel request to SIGTERM.
		term time.Duration
		// end is the time from the cancel request to the kill.
		end time.Duration
	}{
		"handles SIGTERM":           {true, 0, 0, 30 * time.Second},
		"calls within its interval": {false, 20 * time.Second, 45 * time.Second, 50 * time.Second},
		"calls at once":             {false, time.Second, 26 * time.Second, 31 * time.Second},
		"does not call":             {false, 0, 30 * time.Second, 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := liveness(t, func(c *runs.Config) { c.Policy.CancelGrace = 30 * time.Second })
			h.runner.ignoresSIGTERM = true
			task := h.post()
			w := h.worker(h.runner.last())
			h.ok(w.started(row.sigterm))
			h.advanceReachable(5 * time.Second)
			h.cancel(task)
			requestedAt := h.clock.now
			h.step()
			var term, end time.Duration
			for second := time.Duration(0); end == 0 && second < 3*time.Minute; second += time.Second {
				if row.calls > 0 && second == row.calls {
					alive, err := w.heartbeat()
					h.ok(err)
					if alive.Cancel == nil || *alive.Cancel != "user_requested" {
						t.Errorf("got cancel reason %v, want user_requested", alive.Cancel)
					}
				}
				if term == 0 && len(h.runner.stopped) > 0 {
					term = max(h.clock.now.Sub(requestedAt), 1)
				}
				if h.record(task).State == run.Failed {
					end = h.clock.now.Sub(requestedAt)
				}
				h.advanceReachable(time.Second)
			}
			if term < row.term || term > row.term+2*time.Second {
				t.Errorf("got SIGTERM after %s, want %s", term, row.term)
			}
			if end < row.end || end > row.end+3*time.Second {
				t.Errorf("got the kill after %s, want %s", end, row.end)
			}
			if r := h.wantState(task, run.Failed); r.Fault.Code != fault.CancelTimeout {
				t.Errorf("got fault %v, want %s", r.Fault, fault.CancelTimeout)
			}
			if _, err := w.heartbeat(); !fault.Is(err, fault.TaskExpired) {
				t.Errorf("got %v for a heartbeat after the end, want %s", err, fault.TaskExpired)
			}
		})
	}
}

// TestWorkerThatEndsInTheGraceIsCancelled stores the progress that the worker
// reports.
//
// Rule 12 of shared/README.md.
func TestWorkerThatEndsInTheGraceIsCancelled(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	h.cancel(task)
	h.step()
	if len(h.runner.stopped) != 0 {
		t.Error("got SIGTERM before the cancel request was delivered, want it after")
	}
	if _, err := w.heartbeat(); err != nil {
		t.Fatal(err)
	}
	final, _, err := h.service.Completed(t.Context(), w.bearer(), contract.TaskCompleted{
		Attempt: 1, WorkerID: w.id, Outcome: contract.OutcomeCancelled,
		CancelledDuringPhase: "processing", PartialProgress: []byte(`{"recordsProcessed":500000}`),
	})
	h.ok(err)
	if final != run.OutcomeCancelled {
		t.Errorf("got outcome %s, want %s", final, run.OutcomeCancelled)
	}
	h.step()
	r := h.wantState(task, run.Cancelled)
	if report := r.Attempt.Report; report.Phase != "processing" || string(report.Partial) != `{"recordsProcessed":500000}` {
		t.Errorf("got report %+v, want phase processing and its partial progress", report)
	}
	if h.runner.live() != 0 {
		t.Errorf("got %d live machines, want 0", h.runner.live())
	}
}

// TestCancelOverridesLaterOutcomes cancels before a start, before a retryable
// failure and before a late success.
//
// Rule 12 of shared/README.md.
func TestCancelOverridesLaterOutcomes(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	h.runner.ignoresSIGTERM = true
	task := h.post()
	w := h.worker(h.runner.last())
	h.cancel(task)
	h.step()
	if err := w.started(true); !fault.Is(err, fault.TaskAlreadyTerminal) {
		t.Errorf("got %v for a start after the cancel request, want %s", err, fault.TaskAlreadyTerminal)
	}
	final, _, err := h.service.Completed(t.Context(), w.bearer(), contract.TaskCompleted{
		Attempt: 1, WorkerID: w.id, Outcome: contract.OutcomeFailed,
		Error: &contract.TaskError{Category: contract.CategoryInfrastructure, Message: "disk full"},
	})
	h.ok(err)
	if final != run.OutcomeCancelled {
		t.Errorf("got outcome %s, want %s", final, run.OutcomeCancelled)
	}
	h.advanceReachable(time.Minute)
	h.wantState(task, run.Cancelled)
	if len(h.runner.launched) != 1 {
		t.Errorf("got %d machines launched, want 1", len(h.runner.launched))
	}
}
