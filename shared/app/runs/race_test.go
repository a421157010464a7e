package runs_test

import (
	"context"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// racingStore is a store that calls first before a commit, after skip other commits.
type racingStore struct {
	port.Store
	skip  int
	first func()
}

// raceWith returns a service whose commits lose a race.
func (h *fixture) raceWith(store *racingStore) system {
	store.Store = h.store
	return h.system(wiring{store: store})
}

// Commit implements port.Store.
func (s *racingStore) Commit(ctx context.Context, writes ...port.Write) error {
	if s.skip--; s.skip < 0 && s.first != nil {
		do := s.first
		s.first = nil
		do()
	}
	return s.Store.Commit(ctx, writes...)
}

// TestLostCommitIsDecidedAgain decides a success and a cancel request on the same
// record: the first commit wins, and the other is decided again on its result.
//
// Rule 2 of shared/README.md.
func TestLostCommitIsDecidedAgain(t *testing.T) {
	t.Parallel()
	for name, reportFirst := range map[string]bool{"report first": true, "cancel first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			h.wantState(task, run.Running)
			cancel := func(service system) {
				_, err := service.Cancel(t.Context(), client, task, "")
				h.ok(err)
			}
			other := &racingStore{}
			slow := h.raceWith(other)
			r := h.record(task)
			if reportFirst {
				other.first = func() { h.ok(h.report(h.runner.last(), success())) }
				cancel(slow)
			} else {
				other.first = func() { cancel(h.service) }
				claims := token.Claims{TenantID: r.Tenant, WorkspaceID: r.Workspace, RunID: r.ID, TaskID: task, Attempt: 1}
				h.ok(slow.Callback(t.Context(), token.Bearer{Claims: claims}, success()))
			}
			if other.first != nil {
				t.Fatal("got no lost race, want one")
			}
			r = h.record(task)
			if r.State != run.Terminating || r.Cancel == nil || r.Attempt.Report == nil {
				t.Errorf("got state %s, cancel request %v and report %v, want %s with both", r.State, r.Cancel, r.Attempt.Report, run.Terminating)
			}
			h.step()
			want := run.Cancelled
			if reportFirst {
				want = run.Completed
			}
			h.wantState(task, want)
		})
	}
}

// TestSlotReleasedWhileQueueingIsGranted releases a slot while a run is being
// enqueued, in both orders: the run gets it without a sweep.
//
// Rule 6 of shared/README.md.
func TestSlotReleasedWhileQueueingIsGranted(t *testing.T) {
	t.Parallel()
	for name, releaseFirst := range map[string]bool{"release first": true, "enqueue first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, oneMachine)
			holder := h.post()
			h.wantState(holder, run.Running)
			h.ok(h.report(h.runner.last(), success()))
			waiter := h.accept()
			admit := func(service system) {
				_, err := service.Admit(t.Context(), h.input(waiter, run.StepPending))
				h.ok(err)
			}
			terminate := func(service system) {
				_, err := service.Terminate(t.Context(), h.input(holder, run.StepTerminating))
				h.ok(err)
			}
			if releaseFirst {
				// The first commit finds no slot, the second enqueues the run.
				admit(h.raceWith(&racingStore{skip: 1, first: func() { terminate(h.service) }}))
			} else {
				terminate(h.raceWith(&racingStore{first: func() { admit(h.service) }}))
			}
			h.wantState(holder, run.Completed)
			h.wantState(waiter, run.ContainerCreating)
		})
	}
}

// input returns the input of a step from the run's first execution.
func (h *fixture) input(task string, step run.Step) runs.StepInput {
	ref := h.record(task).Ref()
	return runs.StepInput{Ref: ref, Step: step, Execution: run.ExecutionName(ref, 1)}
}

// TestCurrentLimitAppliesToTheQueue restarts with more machines and with fewer.
//
// Rule 6 of shared/README.md.
func TestCurrentLimitAppliesToTheQueue(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.queue(5)
	h.config.MaxMachines = 3
	h.ok(h.raceWith(&racingStore{}).Sweep(t.Context(), 0))
	h.step()
	h.wantState(tasks[2], run.Running)
	h.wantState(tasks[3], run.Pending)
	// With a limit of one again, the end of one of three runs grants no slot.
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(tasks[2], run.Completed)
	h.wantState(tasks[3], run.Pending)
}

// TestNewRunDoesNotOvertakeTheQueue admits a run while free slots are not granted
// to the queue yet.
//
// Rule 6 of shared/README.md.
func TestNewRunDoesNotOvertakeTheQueue(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.queue(3)
	late := h.accept()
	h.config.MaxMachines = 3
	_, err := h.raceWith(&racingStore{}).Admit(t.Context(), h.input(late, run.StepPending))
	h.ok(err)
	h.wantState(tasks[1], run.ContainerCreating)
	h.wantState(tasks[2], run.ContainerCreating)
	if r := h.wantState(late, run.Pending); r.Slot.State != platform.SlotQueued {
		t.Errorf("got slot %+v for the new run, want it queued", r.Slot)
	}
}
