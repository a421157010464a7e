package runs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestChangedLimitAppliesToWaitingRuns raises, removes and lowers the limit of a job.
func TestChangedLimitAppliesToWaitingRuns(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		patch   string
		running int
		next    run.State
	}{
		"raised":       {`{"constraints":{"maxConcurrentRuns":3}}`, 3, run.ActionRunning},
		"raised above": {`{"constraints":{"maxConcurrentRuns":9}}`, 5, run.Running},
		"removed":      {`{"constraints":{"maxConcurrentRuns":null},"actions":null}`, 5, run.Running},
		"lowered":      {`{"constraints":{"maxConcurrentRuns":1}}`, 2, run.ActionRunning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, manyMachines)
			ref := h.createJob("nightly", limited("maxConcurrentRuns: 2", "type: wait"))
			var ids []string
			for range 5 {
				ids = append(ids, h.requested(ref, spec.Override{}))
			}
			h.wantSlots(platform.JobPool("nightly"), 2, 3)
			h.patch(ref, row.patch)
			ids = append(ids, h.requested(ref, spec.Override{}))
			for i, id := range ids {
				want := run.ActionRunning
				if i < row.running || i == 5 && row.next == run.Running {
					want = run.Running
				}
				h.wantState(id, want)
			}
		})
	}
}

// TestOnlySlotIsFollowedByAll queues a run that needs the only slot of a job before other runs.
// When it runs or is cancelled, all other slots are granted.
func TestOnlySlotIsFollowedByAll(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancelled %t", cancelled), func(t *testing.T) {
			t.Parallel()
			h := setup(t, manyMachines)
			ref := h.createJob("nightly", limited("requirePreviousSuccess: true, maxConcurrentRuns: 3", "type: wait"))
			first, only := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
			h.patch(ref, `{"constraints": {"requirePreviousSuccess": null}}`)
			others := []string{h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})}
			h.wantState(only, run.ActionRunning)
			for _, id := range others {
				h.wantState(id, run.ActionRunning)
			}
			if cancelled {
				h.cancel(only)
				h.step()
			} else {
				h.exit(first, 0)
				h.wantState(only, run.Running)
			}
			for _, id := range others {
				h.wantState(id, run.Running)
			}
		})
	}
}

// TestRunAwaitsOneWithoutASlot lets a run wait for the success of one that began before its job
// had constraints, and so holds no slot. The waiting run is evaluated again after each
// spec.ActionDelay.
func TestRunAwaitsOneWithoutASlot(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("nightly", "")
	first := h.requested(ref, spec.Override{})
	h.wantState(first, run.Running)
	h.patch(ref, `{"constraints":{"requirePreviousSuccess":true},"actions":{"onConstraintViolation":{"type":"wait"}}}`)
	second := h.requested(ref, spec.Override{})
	h.wantState(second, run.ActionRunning)
	h.advance(time.Minute)
	if n := len(strings.Fields(h.eventsOf(second))); n > 40 {
		t.Errorf("got %d events in a minute, want those of some checks", n)
	}
	h.exit(first, 0)
	h.advance(spec.ActionDelay)
	h.wantState(second, run.Running)
}

// TestAddedLimitCountsRunsUnderWay adds a limit to a job with runs, and adds it again after it
// was removed.
func TestAddedLimitCountsRunsUnderWay(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("nightly", "retryConfig: {maxRetries: 0}\n")
	first := h.requested(ref, spec.Override{})
	limit := `{"constraints":{"maxConcurrentRuns":2},"actions":{"onConstraintViolation":{"type":"wait"}}}`
	h.patch(ref, limit)
	second, third := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
	h.wantState(second, run.Running)
	h.wantState(third, run.ActionRunning)
	h.wantSlots(platform.JobPool("nightly"), 2, 1)
	h.patch(ref, `{"constraints":null,"actions":null}`)
	h.wantState(third, run.Running)
	h.patch(ref, limit)
	h.wantSlots(platform.JobPool("nightly"), 3, 0)
	fourth := h.requested(ref, spec.Override{})
	h.exit(first, 0)
	h.wantState(fourth, run.ActionRunning)
	h.exit(second, 0)
	h.wantState(fourth, run.Running)
}

// TestLoweredLimitAppliesToRunsOfAnEarlierVersion evaluates a run that was created before the
// limit was lowered.
func TestLoweredLimitAppliesToRunsOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) { c.MaxMachines = 1 })
	ref := h.createJob("nightly", limited("maxConcurrentRuns: 3", "type: wait"))
	first, second := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
	h.wantState(second, run.Pending) // in the queue of the pool
	h.patch(ref, `{"constraints":{"maxConcurrentRuns":1}}`)
	_, _, err := h.service.Pools.Put(h.Context(), client, "default", pools.Definition{Limit: 5}, change.Precondition{})
	h.ok(err)
	h.step()
	h.wantState(second, run.ActionRunning)
	h.exit(first, 0)
	h.wantState(second, run.Running)
}

// TestChangedLimitOfAKeyApplies raises the limit of a key.
func TestChangedLimitOfAKeyApplies(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("nightly", "concurrencyKey: shop\n")
	a, b, c := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
	h.wantState(b, run.Pending)
	h.patch(ref, `{"concurrency":{"limit":2}}`)
	h.wantState(b, run.Running)
	h.wantState(c, run.Pending)
	h.patch(ref, `{"concurrency":{"limit":1}}`)
	h.ends(a)
	h.wantState(c, run.Pending)
	h.ends(b)
	h.wantState(c, run.Running)
}
