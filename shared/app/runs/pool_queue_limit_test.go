package runs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// TestPoolsHaveQueueLimitsOfTheirOwn fills the queue of one pool: requests get a fault,
// firings are recorded as skipped.
func TestPoolsHaveQueueLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := setup(t)
	two := 2
	_, _, err := h.service.Pools.Put(t.Context(), client, "reports", pools.Definition{Limit: 1, QueueLimit: &two}, change.Precondition{})
	h.ok(err)
	for range 3 { // one slot, two places; nothing is admitted yet
		h.ok(h.once("reports"))
	}
	for when, do := range map[string]func(){"accepted": func() {}, "admitted": h.step, "counted again": func() { h.advance(2 * time.Second) }} {
		do()
		if err := h.once("reports"); !fault.Is(err, fault.AdmissionReject) {
			t.Errorf("%s: got %v, want AdmissionReject", when, err)
		}
	}
	h.ok(h.once("default"))
	ref := h.createJob("nightly", "schedule: \"@every 10m\"\npool: reports\n")
	h.wake(ref)
	h.wantRuns(ref, fmt.Sprintf("%s schedule Completed queue_full x1", h.clock.now.Sub(epoch)))
	if f := fault.Of(h.once("tiny")); f == nil || f.Code != fault.Unprocessable || f.Field != "pool" {
		t.Errorf("got %v, want Unprocessable about pool", f)
	}
}

// TestLoweredQueueLimitHoldsAfterAGrant lowers the limit below the length of the queue: one
// run that leaves it makes no room.
func TestLoweredQueueLimitHoldsAfterAGrant(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.posts(6) // one has the slot
	limit := func(n int) {
		t.Helper()
		_, _, err := h.service.Pools.Put(t.Context(), client, "default", pools.Definition{Limit: 1, QueueLimit: &n}, change.Precondition{})
		h.ok(err)
	}
	full := func(when string) {
		t.Helper()
		if err := h.once("default"); !fault.Is(err, fault.AdmissionReject) {
			t.Errorf("%s: got %v, want AdmissionReject", when, err)
		}
	}
	limit(2)
	h.advance(2 * time.Second)
	full("5 of 2 places are taken")
	for i := range 2 {
		h.succeed(tasks[i])
		full(fmt.Sprintf("%d of 2 places are taken", 4-i))
	}
	limit(5)
	h.ok(h.once("default"))
	h.ok(h.once("default"))
	full("the limit was raised to 5")
}
