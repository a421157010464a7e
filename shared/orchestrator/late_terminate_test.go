package orchestrator_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
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
			setup: func(t *testing.T) *fixture { t.Helper(); return fallsBack(t) },
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
			h.before[run.StepTerminating] = func(in orchestrator.StepInput) {
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
				if _, err := h.service.Terminate(t.Context(), in); err != nil {
					t.Logf("the late call failed: %v", err)
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
