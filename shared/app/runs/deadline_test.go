package runs_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// envelope decodes the envelope of a machine.
func (h *fixture) envelope(m *machine) (e contract.TaskEnvelope) {
	h.Helper()
	h.ok(json.Unmarshal([]byte(m.spec.Env[contract.EnvelopeVariable]), &e))
	return e
}

// TestTokenCoversTheDeadline checks WC-2.8 for the token and the presigned URLs of
// an attempt: they are valid until the end of the grace after its deadline, for
// the configured time at least and for two hours at most.
func TestTokenCoversTheDeadline(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		start, run, grace, ttl, want time.Duration
	}{
		"short run":            {time.Minute, 10 * time.Minute, 10 * time.Second, time.Hour, time.Hour},
		"default limits":       {10 * time.Minute, time.Hour, 30 * time.Second, time.Hour, 70*time.Minute + 30*time.Second},
		"grace over two hours": {time.Minute, 118 * time.Minute, 5 * time.Minute, time.Hour, 2 * time.Hour},
		"long run":             {time.Minute, 14 * 24 * time.Hour, time.Minute, time.Minute, 2 * time.Hour},
		"short life":           {30 * time.Second, 3 * time.Minute, time.Second, time.Minute, 3*time.Minute + 31*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) {
				c.TokenTTL, c.Policy.StartTimeout, c.Policy.TimeLimit, c.Policy.CancelGrace = row.ttl, row.start, row.run, row.grace
			})
			h.post()
			e := h.envelope(h.runner.last())
			if got := e.TokenExpiresAt.Sub(epoch); got != row.want || h.outputs.presigned != row.want {
				t.Errorf("got a token for %s and URLs for %s, want %s", got, h.outputs.presigned, row.want)
			}
			if want := epoch.Add(row.start + row.run); !e.Deadline.Equal(want) {
				t.Errorf("got deadline %s, want %s", e.Deadline, want)
			}
		})
	}
}

// TestThrottlingCostsNoTimeOfTheWorker throttles the starts of a run for more than
// an hour. The worker gets its whole time limit, and its tokens cover it.
func TestThrottlingCostsNoTimeOfTheWorker(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) { c.Policy.QueueTimeout = 24 * time.Hour })
	free := epoch.Add(75 * time.Minute)
	var refuse func(*machine) error
	refuse = func(m *machine) error {
		if !h.clock.now.Before(free) {
			return nil
		}
		m.Phase, h.runner.during = port.MachineGone, refuse
		return fault.New(fault.Throttled, "too many machines")
	}
	h.runner.during = refuse
	task := h.post()
	for h.clock.now.Before(free.Add(10 * time.Minute)) {
		h.advance(time.Minute)
		h.sweep()
		if h.record(task).State == run.Running {
			break
		}
	}
	r := h.wantState(task, run.Running)
	m := h.runner.last()
	e := h.envelope(m)
	if left := e.Deadline.Sub(r.Attempt.StartedAt); left < r.Policy.TimeLimit {
		t.Errorf("got %s from the start to the deadline, want at least %s", left, r.Policy.TimeLimit)
	}
	h.clock.to(e.Deadline.Add(time.Second))
	if _, err := h.service.Authenticate(t.Context(), e.TaskToken, task); err != nil {
		t.Errorf("got %v for the task token at the deadline, want nil", err)
	}
	h.clock.to(e.Deadline.Add(time.Hour - time.Second))
	if err := h.report(m, success()); fault.Is(err, fault.Unauthenticated) {
		t.Errorf("got %v for the callback token an hour after the deadline, want it valid", err)
	}
}

// TestUnavailablePlatformKeepsTheStartLimit leaves create calls unanswered: the
// start limit counts from the first of them.
func TestUnavailablePlatformKeepsTheStartLimit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var lose func(*machine) error
	lose = func(m *machine) error {
		m.Phase, h.runner.during = port.MachineGone, lose
		return fault.New(fault.Unavailable, "no answer")
	}
	h.runner.during = lose
	task := h.post()
	limit := h.record(task).Attempt.StartBy
	h.advance(h.config.Policy.StartTimeout)
	if !limit.Equal(epoch.Add(h.config.Policy.StartTimeout)) {
		t.Errorf("got start limit %s, want %s after the first call", limit, h.config.Policy.StartTimeout)
	}
	h.wantEvents(task, "attempt_ended:START_TIMEOUT")
}

// TestNextAttemptAwaitsTheCreateCall ends a start limit that is shorter than the
// create call. The next attempt starts after the machine of the call is gone.
//
// Rule 5 of shared/README.md.
func TestNextAttemptAwaitsTheCreateCall(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.hidden = true
		h.clock.to(h.clock.now.Add(20 * time.Second))
		ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
		in := runs.StepInput{Ref: ref, Execution: run.ExecutionName(ref, 1), Carried: runs.Carried{Generation: 1}}
		_, err := h.service.Reconcile(h.Context(), in)
		h.ok(err)
		if _, err := h.service.Terminate(h.Context(), in); !errors.As(err, new(runs.TryAgain)) {
			t.Errorf("got %v while the create call has no answer, want TryAgain", err)
		}
		m.hidden = false
		return nil
	}
	r, err := h.exportWith(contract.Policy{StartTimeoutSeconds: new(1)})
	h.ok(err)
	h.step()
	h.wantEvents(r.TaskID, "attempt_ended:START_TIMEOUT")
	h.advance(2 * time.Minute)
	r = h.wantState(r.TaskID, run.Running)
	if r.Attempt.Number != 2 || h.runner.launched[0].Phase != port.MachineGone || h.runner.live() != 1 {
		t.Errorf("got attempt %d and %d live machines, want attempt 2 on the only one", r.Attempt.Number, h.runner.live())
	}
}
