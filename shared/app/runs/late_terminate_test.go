package runs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestLateTerminateLeavesTheNextAttempt calls Terminate twice for an attempt, as Step Functions
// may after a timeout. The first call is slow: while it works, the second one ends the attempt,
// and the next attempt starts and uploads.
//
// Rule 3 of shared/README.md.
func TestLateTerminateLeavesTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		setup func(t *testing.T) *fixture
		// begin ends the first attempt. pause calls the function within the next Terminate.
		begin func(h *fixture)
		pause func(h *fixture, do func())
	}{
		"before it looks for a machine": {
			setup: fallsBack,
			begin: func(h *fixture) {
				h.runner.during = func(*machine) error {
					h.runner.launched = nil
					return fault.New(fault.Capacity, "no room")
				}
			},
			pause: func(h *fixture, do func()) { h.clock.during = do },
		},
		"before it clears the uploads": {
			setup: func(t *testing.T) *fixture { t.Helper(); return setup(t) },
			begin: func(h *fixture) { h.runner.during = func(m *machine) error { m.exit(1); return nil } },
			pause: func(h *fixture, do func()) { h.runner.seen = do },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := row.setup(t)
			row.begin(h)
			upload := ""
			h.before[run.StepTerminating] = func(in runs.StepInput) {
				row.pause(h, func() {
					_, err := h.service.Terminate(t.Context(), in)
					h.ok(err)
					h.clock.to(h.clock.now.Add(5 * time.Second))
					task := h.record(in.ID).TaskID
					_, err = h.service.Admit(t.Context(), h.input(task, run.StepPending))
					h.ok(err)
					h.ok(h.service.Launch(t.Context(), h.input(task, run.StepContainerCreating)))
					upload = limit.OutputPrefix(task) + "out.xml"
					h.outputs.buckets[port.Uploads][upload] = "the output of attempt 2"
				})
				_, err := h.service.Terminate(t.Context(), in)
				if _, again := errors.AsType[runs.TryAgain](err); !again {
					t.Errorf("got %v from the late call, want TryAgain", err)
				}
			}
			task := h.post()
			r := h.record(task)
			if r.Attempt.Number != 2 || upload == "" {
				t.Fatalf("got attempt %d in %s, want attempt 2 within the late call", r.Attempt.Number, r.State)
			}
			if m := h.runner.last(); m.Phase == port.MachineGone || m.Owner.Attempt != 2 {
				t.Errorf("got machine %+v, want that of attempt 2, which still runs", m.MachineStatus)
			}
			if h.outputs.buckets[port.Uploads][upload] == "" {
				t.Error("got no upload of attempt 2, want it kept")
			}
		})
	}
}

// lateQueue calls a function before it reads a queue, once, and checks the commits.
type lateQueue struct {
	port.Store
	h      *fixture
	before func()
}

// Queue implements port.Store.
func (s *lateQueue) Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	return s.Store.Queue(ctx, tenant, pool, limit)
}

// Commit implements port.Store.
func (s *lateQueue) Commit(ctx context.Context, writes ...port.Write) error {
	seen := map[run.Ref]bool{}
	for _, w := range writes {
		if seen[w.Run.Ref()] {
			s.h.Errorf("got a commit with run %s twice, want it once", w.Run.ID)
		}
		seen[w.Run.Ref()] = true
	}
	return s.Store.Commit(ctx, writes...)
}

// TestLateReleaseGrantsNoSlotToItsOwnRun releases the slot of a run that another call has ended
// and queued again for its next attempt.
//
// Rule 6 of shared/README.md.
func TestLateReleaseGrantsNoSlotToItsOwnRun(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	task, other := h.post(), h.post()
	h.wantState(task, run.Running)
	h.runner.last().exit(1)
	played := false
	h.before[run.StepTerminating] = func(in runs.StepInput) {
		late := &lateQueue{Store: h.store, h: h}
		late.before = func() {
			_, err := h.service.Terminate(t.Context(), in)
			h.ok(err)
			h.clock.to(h.clock.now.Add(5 * time.Second))
			_, err = h.service.Admit(t.Context(), h.input(task, run.StepPending))
			h.ok(err)
			played = h.record(task).Queued()
		}
		_, err := h.system(wiring{store: late}).Terminate(t.Context(), in)
		h.ok(err)
	}
	h.sweep()
	if r := h.record(task); !played || r.Attempt.Number != 1 || !r.Queued() {
		t.Errorf("got attempt %d in %s, want the run in the queue for its second attempt", r.Attempt.Number, r.State)
	}
	if r := h.record(other); r.Slot.State != platform.SlotHeld {
		t.Errorf("got the slot of the other run %s, want it held", r.Slot.State)
	}
}
