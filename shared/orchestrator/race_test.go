package orchestrator_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// raced is a store before whose next commit somebody else's is made.
type raced struct {
	orchestrator.Store
	first func()
}

// Commit is orchestrator.Store.
func (s *raced) Commit(ctx context.Context, writes ...orchestrator.Write) error {
	if do := s.first; do != nil {
		s.first = nil
		do()
	}
	return s.Store.Commit(ctx, writes...)
}

// TestRule2WhoLosesARaceDecidesAgain has a worker's success and a cancel be
// decided on the same record: the one that commits first stands, and the other is
// decided again on what the first has made of the run.
func TestRule2WhoLosesARaceDecidesAgain(t *testing.T) {
	t.Parallel()
	for name, reportFirst := range map[string]bool{"the report is first": true, "the cancel is first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			h.stands(task, run.Running)
			cancel := func(service *orchestrator.Service) {
				_, err := service.Cancel(t.Context(), client, task, "")
				h.ok(err)
			}
			other := &raced{Store: h.store}
			slow := orchestrator.New(orchestrator.Ports{
				Store: other, Executions: h.calls, Clock: h.clock, Log: slog.New(slog.DiscardHandler),
			}, h.config)
			r := h.record(task)
			if reportFirst {
				other.first = func() { h.ok(h.report(h.runner.last(), success())) }
				cancel(slow)
			} else {
				other.first = func() { cancel(h.service) }
				claims := contract.Claims{TenantID: r.Tenant, WorkspaceID: r.Workspace, RunID: r.ID, TaskID: task, Attempt: 1}
				h.ok(slow.Callback(t.Context(), claims, success()))
			}
			if other.first != nil {
				t.Fatal("nobody lost a race")
			}
			r = h.record(task)
			if r.State != run.Terminating || r.Cancel == nil || r.Attempt.Report == nil {
				t.Errorf("it is %s, cancelled by %v, reported by %v", r.State, r.Cancel, r.Attempt.Report)
			}
			h.step()
			h.stands(task, run.Cancelled)
		})
	}
}
