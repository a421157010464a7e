package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// caller sends the calls of a worker.
type caller struct {
	*fixture
	m  *machine
	id string
}

func (h *fixture) worker(m *machine) caller { return caller{h, m, "worker of " + m.Name} }

// bearer authenticates the token of the worker's envelope.
func (w caller) bearer() token.Bearer {
	w.Helper()
	var e contract.TaskEnvelope
	w.ok(json.Unmarshal([]byte(w.m.spec.Env[contract.EnvelopeVariable]), &e))
	b, err := w.service.Authenticate(w.Context(), e.TaskToken, e.TaskID)
	w.ok(err)
	return b
}

func (w caller) started(sigterm bool) error {
	w.Helper()
	b := w.bearer()
	_, err := w.service.Started(w.Context(), b, contract.TaskStarted{Attempt: b.Attempt, WorkerID: w.id, HandlesSigterm: sigterm})
	return err
}

func (w caller) heartbeat() (runs.HeartbeatResult, error) {
	w.Helper()
	b := w.bearer()
	return w.service.Heartbeat(w.Context(), b, contract.TaskHeartbeat{Attempt: b.Attempt, WorkerID: w.id})
}

// sendHeartbeats sends heartbeats at the interval while the clock advances and the
// reception is recorded.
func (w caller) sendHeartbeats(d, interval time.Duration) {
	w.Helper()
	for until := w.clock.now.Add(d); w.clock.now.Before(until); {
		w.advanceReachable(interval)
		_, err := w.heartbeat()
		w.ok(err)
	}
}

// advanceReachable advances the clock without calls while workers can reach the API.
func (h *fixture) advanceReachable(d time.Duration) {
	h.Helper()
	for d > 0 {
		h.ok(h.service.RecordReception(h.Context()))
		h.advance(min(d, 10*time.Second))
		d -= 10 * time.Second
	}
	h.ok(h.service.RecordReception(h.Context()))
}

// liveness returns a fixture with a reception record.
func liveness(t *testing.T, change ...func(*runs.Config)) *fixture {
	t.Helper()
	h := setup(t, append(change, func(c *runs.Config) { c.SweepInterval = 10 * time.Second })...)
	h.ok(h.service.RecordReception(t.Context()))
	return h
}

// TestContactedWorkerNeedsHeartbeats runs a worker as long as it calls. After its
// last call it is declared dead at most half an interval late, its machine is
// destroyed and its calls are refused.
//
// Rule 7 of shared/README.md.
func TestContactedWorkerNeedsHeartbeats(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	version := h.record(task).Version
	w.sendHeartbeats(8*time.Minute, 30*time.Second)
	if r := h.wantState(task, run.Running); r.Version != version {
		t.Errorf("got %d writes of the record by heartbeats, want 0", r.Version-version)
	}
	last := h.clock.now
	h.advanceReachable(89 * time.Second)
	h.wantState(task, run.Running)
	for h.record(task).State == run.Running {
		h.advanceReachable(time.Second)
	}
	p := h.config.Policy
	if late := h.clock.now.Sub(last.Add(p.HeartbeatTimeout)); late < 0 || late > p.HeartbeatInterval/2 {
		t.Errorf("got the timeout %s late, want 0 to %s", late, p.HeartbeatInterval/2)
	}
	h.wantEvents(task, "attempt_ended:HEARTBEAT_TIMEOUT")
	if _, err := w.heartbeat(); !fault.Is(err, fault.TaskExpired) {
		t.Errorf("got %v for a heartbeat after the timeout, want %s", err, fault.TaskExpired)
	}
	if err := w.started(false); !fault.Is(err, fault.TaskExpired) {
		t.Errorf("got %v for a start after the timeout, want %s", err, fault.TaskExpired)
	}
	h.advance(10 * time.Second)
	if h.wantState(task, run.Running); len(h.runner.launched) != 2 || h.runner.live() != 1 {
		t.Errorf("got %d machines launched and %d live, want 2 and 1", len(h.runner.launched), h.runner.live())
	}
	if _, err := w.heartbeat(); !fault.Is(err, fault.AttemptMismatch) {
		t.Errorf("got %v for a heartbeat of attempt 1 during attempt 2, want %s", err, fault.AttemptMismatch)
	}
}

// TestHeartbeatItemCounts loses heartbeats on the way to the execution: the stored
// item counts.
//
// Rule 7 of shared/README.md.
func TestHeartbeatItemCounts(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	h.calls.lostRequests["Heartbeat"] = 1 << 20
	w.sendHeartbeats(9*time.Minute, 30*time.Second)
	h.wantState(task, run.Running)
}

// TestTimeoutLosesToAHeartbeat sends a heartbeat while the heartbeat timeout is being
// committed.
//
// Rule 7 of shared/README.md.
func TestTimeoutLosesToAHeartbeat(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	h.store.beforeTimeout = func() {
		_, err := w.heartbeat()
		h.ok(err)
	}
	h.advanceReachable(95 * time.Second)
	if h.store.beforeTimeout != nil {
		t.Fatal("got no heartbeat timeout, want one")
	}
	wantRunning := func() {
		t.Helper()
		if r := h.wantState(task, run.Running); r.Attempt.Number != 1 {
			t.Errorf("got attempt %d (events %s), want 1", r.Attempt.Number, h.eventsOf(task))
		}
	}
	wantRunning()
	h.advanceReachable(80 * time.Second)
	wantRunning()
	h.advanceReachable(20 * time.Second)
	h.wantEvents(task, "attempt_ended:HEARTBEAT_TIMEOUT")
}

// TestWorkerWithoutHeartbeatsKeepsRunning runs until the time limit. After its
// first call the heartbeat limit applies.
//
// Rule 7 of shared/README.md.
func TestWorkerWithoutHeartbeatsKeepsRunning(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	h.advanceReachable(5 * time.Minute)
	h.wantState(task, run.Running)
	h.wantEvents(task, "heartbeat_exempted")
	w := h.worker(h.runner.last())
	_, err := w.heartbeat()
	h.ok(err)
	h.advanceReachable(95 * time.Second)
	h.wantEvents(task, "attempt_ended:HEARTBEAT_TIMEOUT")
}

// TestNothingExtendsTheTimeLimit sends heartbeats from the start, or only late, which enters
// the state again.
//
// Rule 7 of shared/README.md.
func TestNothingExtendsTheTimeLimit(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]time.Duration{"from its start": 0, "late": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := liveness(t)
			task := h.post()
			h.advanceReachable(silence)
			w := h.worker(h.runner.last())
			h.ok(w.started(false))
			w.sendHeartbeats(9*time.Minute+30*time.Second-silence, 30*time.Second)
			h.advanceReachable(31 * time.Second)
			h.wantEvents(task, "attempt_ended:RUN_TIMEOUT")
		})
	}
}

// TestHeartbeatLeavesTheRecordUnchanged sends heartbeats with a cached token and with one that
// is new to the process.
//
// Rule 7 of shared/README.md.
func TestHeartbeatLeavesTheRecordUnchanged(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	before, commits := h.wantState(task, run.Running), len(h.store.commits)
	known := w.bearer()
	unknown := token.Bearer{Claims: known.Claims, IssuedAt: known.IssuedAt, ExpiresAt: known.ExpiresAt}
	for _, bearer := range []token.Bearer{known, unknown, known, unknown} {
		h.advance(time.Second)
		_, err := h.service.Heartbeat(t.Context(), bearer, contract.TaskHeartbeat{Attempt: 1, WorkerID: w.id})
		h.ok(err)
		if heartbeat, err := h.store.LastHeartbeat(t.Context(), before.Ref()); err != nil || !heartbeat.At.Equal(h.clock.now) {
			t.Errorf("got the last heartbeat at %v (%v), want %v", heartbeat.At, err, h.clock.now)
		}
	}
	h.ok(w.started(false)) // a repeated start counts as a heartbeat
	h.equal(before, h.record(task))
	if len(h.store.commits) != commits {
		t.Errorf("got %d commits by heartbeats, want 0", len(h.store.commits)-commits)
	}
}

// TestSweepRecordsTheReception sends canaries with success and with failure.
//
// Rule 8 of shared/README.md.
func TestSweepRecordsTheReception(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.sweep()
	since := h.clock.now
	wantReception := func(want port.Reception) {
		t.Helper()
		note, err := h.store.Reception(t.Context())
		h.ok(err)
		h.equal(want, note)
	}
	wantReception(port.Reception{Since: since, At: since})
	h.advance(80 * time.Second)
	h.sweep()
	last := h.clock.now
	wantReception(port.Reception{Since: since, At: last})
	for name, broken := range map[string]func(){
		"unreachable":         func() { h.probe = func(context.Context) error { return errors.New("unreachable") } },
		"store without write": func() { h.probe, h.store.down = nil, true },
	} {
		h.advance(time.Minute)
		broken()
		if err := h.service.Sweep(t.Context(), 0); err == nil {
			t.Errorf("%s: got nil from a sweep whose canary failed, want an error", name)
		}
		wantReception(port.Reception{Since: since, At: last})
		h.probe, h.store.down = nil, false
	}
	h.sweep()
	wantReception(port.Reception{Since: h.clock.now, At: h.clock.now})
}

// TestBurstOfLateHeartbeatsIsAccepted delivers delayed heartbeats at once.
func TestBurstOfLateHeartbeatsIsAccepted(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	for range 3 {
		h.advanceReachable(85 * time.Second)
		for range 10 {
			_, err := w.heartbeat()
			h.ok(err)
		}
	}
	h.wantState(task, run.Running)
}

// contended is a store in which another process always records a canary first.
type contended struct{ port.Store }

// RecordReception implements port.Store.
func (contended) RecordReception(context.Context, port.Reception, port.Reception) error {
	return port.ErrConflict
}

// TestContendedCanaryIsUnavailable sends a canary whose record always conflicts.
func TestContendedCanaryIsUnavailable(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.service = h.system(wiring{store: contended{h.store}})
	if err := h.service.RecordReception(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want a fault of the code UNAVAILABLE", err)
	}
}
