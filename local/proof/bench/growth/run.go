package growth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// programBody is a run of a program without inputs.
const programBody = `{"image": "registry.example/report:1", "command": ["report", "--all"]}`

// submit starts a run and returns its id.
func (h *home) submit(ctx context.Context, tenant, path, body string) (id string, err error) {
	var accepted struct {
		TaskID string `json:"taskId"`
	}
	err = h.call(ctx, tenant, http.MethodPost, path, body, &accepted)
	return accepted.TaskID, err
}

// finish drives the state machine and the worker of a run until the run has ended. The workers of
// others do not run.
func (h *home) finish(ctx context.Context, tenant, id string) error {
	for limit := h.clock.Now().Add(time.Hour); h.clock.Now().Before(limit); {
		if err := h.settle(ctx); err != nil {
			return err
		}
		if one := h.machines.take(id); one != nil {
			if err := h.work(ctx, one); err != nil {
				return err
			}
			continue
		}
		r, err := h.store.Find(ctx, tenant, id)
		if err != nil {
			return err
		}
		if r.State == run.Completed {
			h.clock.Advance(unstored)
			return h.settle(ctx)
		}
		if r.State.Terminal() {
			return fmt.Errorf("run %s: got %s, want %s", id, r.State, run.Completed)
		}
		h.clock.Advance(h.pause())
	}
	return fmt.Errorf("run %s has not ended", id)
}

// unstored exceeds the time for which results of functions are only in memory.
const unstored = 5 * time.Second

// pause returns the time until the engine is due, at most a second.
func (h *home) pause() time.Duration {
	if next, ok := h.engine.NextDue(); ok {
		return min(time.Second, max(time.Millisecond, next.Sub(h.clock.Now())))
	}
	return time.Second
}

// work runs the worker of a machine: it reports its start and its success.
func (h *home) work(ctx context.Context, one *machine) error {
	var envelope contract.TaskEnvelope
	if err := json.Unmarshal([]byte(one.env[contract.EnvelopeVariable]), &envelope); err != nil {
		return err
	}
	now := h.clock.Now()
	for _, report := range []struct {
		route string
		body  any
	}{
		{"started", contract.TaskStarted{Attempt: envelope.Attempt, WorkerID: one.ID, StartedAt: now}},
		{"completed", contract.TaskCompleted{Attempt: envelope.Attempt, WorkerID: one.ID, Outcome: contract.OutcomeSucceeded, CompletedAt: now, Exit: &contract.Exit{}}},
	} {
		text, err := json.Marshal(report.body)
		if err != nil {
			return err
		}
		if err := h.callAs(ctx, one.Owner.Tenant, envelope.TaskToken, http.MethodPost, "/v1/tasks/"+envelope.TaskID+"/"+report.route, string(text), nil); err != nil {
			return err
		}
	}
	h.machines.end(one)
	return nil
}
