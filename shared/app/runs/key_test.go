package runs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func manyMachines(c *runs.Config) { c.MaxMachines = 10 }

// request creates a run of a job with the override o.
func (h *fixture) request(ref job.Ref, o spec.Override) (run.Run, error) {
	h.Helper()
	h.clock.to(h.clock.now.Add(time.Second))
	r, _, err := h.service.Jobs.RunJob(h.Context(), jobs.RunRequest{Identity: client, JobID: ref.ID, Override: o, CorrelationID: "c"})
	h.step()
	return r, err
}

// requested creates a run and returns its id.
func (h *fixture) requested(ref job.Ref, o spec.Override) string {
	h.Helper()
	r, err := h.request(ref, o)
	h.ok(err)
	return r.ID
}

func (h *fixture) ends(id string) {
	h.Helper()
	h.exit(id, 0)
	h.step()
	h.wantState(id, run.Completed)
}

// wantSlots checks how many runs hold a slot of the pool, and how many are queued.
func (h *fixture) wantSlots(pool string, held, queued int) {
	h.Helper()
	holders, err := h.store.Holders(h.Context(), client.Tenant, pool, 100)
	h.ok(err)
	queue, err := h.store.Queue(h.Context(), client.Tenant, pool, 100)
	h.ok(err)
	if len(holders) != held || len(queue) != queued {
		h.Fatalf("pool %s: got %d held and %d queued, want %d and %d", pool, len(holders), len(queue), held, queued)
	}
}

// TestKeyLimitsRunsOfAllJobs checks that the end of a run starts the next run of its key, and
// no other run.
//
// Rule 6 of shared/README.md.
func TestKeyLimitsRunsOfAllJobs(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	one, two := h.createJob("one", "concurrencyKey: shop\n"), h.createJob("two", "concurrencyKey: shop\n")
	a, b, c := h.requested(one, spec.Override{}), h.requested(two, spec.Override{}), h.requested(one, spec.Override{})
	other := h.requested(two, spec.Override{Key: "other"})
	h.wantState(a, run.Running)
	h.wantState(b, run.Pending)
	h.wantState(other, run.Running)
	h.wantSlots(platform.KeyPool("shop"), 1, 2)
	h.ends(a)
	h.wantState(b, run.Running)
	h.wantState(c, run.Pending)
	if !h.runTogether(a, b) {
		t.Error("got two commits for the end of a run and the grant of its key, want one")
	}
	// A retry keeps the key.
	h.exit(b, 1)
	h.wantState(b, run.Retrying)
	h.wantSlots(platform.KeyPool("shop"), 1, 1)
	h.advance(time.Minute)
	h.ends(b)
	h.ends(c)
	h.wantSlots(platform.KeyPool("shop"), 0, 0)
}

func TestPriorityOrdersThePool(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	ref := h.createJob("one", "priority: batch\n")
	holder := h.requested(ref, spec.Override{})
	batch := h.requested(ref, spec.Override{})
	normal := h.requested(ref, spec.Override{Priority: spec.PriorityNormal})
	urgent := h.requested(ref, spec.Override{Priority: spec.PriorityInteractive})
	for _, id := range []string{holder, urgent, normal, batch} {
		h.wantState(id, run.Running)
		h.ends(id)
	}
}

// TestKeysTakeTurns starts runs of keys with queues of different lengths.
func TestKeysTakeTurns(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	busy, small := h.createJob("busy", ""), h.createJob("small", "")
	current := h.requested(busy, spec.Override{})
	of := map[string]string{}
	for range 4 {
		of[h.requested(busy, spec.Override{})] = "busy"
	}
	for range 2 {
		of[h.requested(small, spec.Override{})] = "small"
	}
	var order []string
	for range len(of) {
		h.ends(current)
		current = ""
		for id := range of {
			if h.record(id).State == run.Running {
				current = id
			}
		}
		order = append(order, of[current])
	}
	if got, want := strings.Join(order, " "), "busy small busy small busy busy"; got != want {
		t.Errorf("got starts %s, want %s", got, want)
	}
}

func TestFullQueueOfAKeyRefusesARequest(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("one", "concurrencyKey: shop\nconcurrency: {queueLimit: 2}\n")
	a, b, c := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
	if _, err := h.request(ref, spec.Override{}); !fault.Is(err, fault.AdmissionReject) {
		t.Fatalf("got %v, want %s", err, fault.AdmissionReject)
	}
	other := h.requested(ref, spec.Override{Key: "other"})
	h.wantState(other, run.Running)
	h.ends(a)
	h.wantState(b, run.Running)
	d := h.requested(ref, spec.Override{})
	h.wantSlots(platform.KeyPool("shop"), 1, 2)
	for _, id := range []string{b, c, d} {
		h.ends(id)
	}
}

func TestNewestRunReplacesTheFirstQueuedOne(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("one", "concurrencyKey: shop\nconcurrency: {queueLimit: 1, overflow: keep_newest}\n")
	a, b, c := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
	old := h.wantState(b, run.Completed)
	if o := old.Overflowed; !old.Skipped || o == nil || o.By != c || o.Rule != spec.OverflowKeepNewest {
		t.Errorf("got %+v, want it skipped for %s", o, c)
	}
	h.wantExecutionEnded(b)
	h.ends(a)
	h.ends(c)
	h.wantSlots(platform.KeyPool("shop"), 0, 0)
}

func TestOldestRunsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("one", "concurrencyKey: shop\nconcurrency: {queueLimit: 1, overflow: keep_oldest}\n")
	a, b, c := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
	late := h.wantState(c, run.Completed)
	if o := late.Overflowed; !late.Skipped || o == nil || o.By != b || o.Rule != spec.OverflowKeepOldest {
		t.Errorf("got %+v, want it skipped for %s", o, b)
	}
	h.ends(a)
	h.ends(b)
}

// TestFiringOverflowsItsKey applies each rule to firings.
func TestFiringOverflowsItsKey(t *testing.T) {
	t.Parallel()
	for rule, skipped := range map[spec.Overflow]int{spec.OverflowReject: 3, spec.OverflowKeepOldest: 3, spec.OverflowKeepNewest: 2} {
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			h := setup(t, manyMachines)
			ref := h.createJob("one", fmt.Sprintf("schedule: \"@every 1h\"\nconcurrencyKey: shop\nconcurrency: {queueLimit: 1, overflow: %s}\n", rule))
			for range 3 {
				h.wake(ref)
			}
			runs := h.runsOf(ref)
			for i, line := range runs {
				if gone := strings.Contains(line, string(run.Completed)); gone != (i == skipped-1) {
					t.Errorf("got runs %q, want number %d skipped", runs, skipped)
					break
				}
			}
			h.wantSlots(platform.KeyPool("shop"), 1, 1)
		})
	}
}

// TestQueuedRunOfAKeyTimesOut counts the waits for the key and the pool together.
func TestQueuedRunOfAKeyTimesOut(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines, func(c *runs.Config) { c.Policy.QueueTimeout = 5 * time.Minute })
	ref := h.createJob("one", "concurrencyKey: shop\n")
	h.requested(ref, spec.Override{})
	b := h.requested(ref, spec.Override{})
	c := h.requested(ref, spec.Override{})
	_, err := h.service.Cancel(h.Context(), client, c, "")
	h.ok(err)
	h.step()
	h.wantState(c, run.Cancelled)
	h.advance(h.config.Policy.QueueTimeout + time.Minute)
	if r := h.wantState(b, run.Failed); r.Fault.Code != fault.QueueTimeout {
		t.Errorf("got %v, want %s", r.Fault, fault.QueueTimeout)
	}
}

// TestKilledProcessLeaksNoSlotOfAKey fails each commit of two runs once: not applied, or
// applied without its effects.
func TestKilledProcessLeaksNoSlotOfAKey(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("one", "concurrencyKey: shop\nconcurrency: {queueLimit: 5}\n")
	var ids []string
	for i := range 4 {
		// The process stops after the creation: no effect follows it.
		h.calls.lostRequests = map[string]int{"Start": 1}
		ids = append(ids, h.requested(ref, spec.Override{}))
		h.wantSlots(platform.KeyPool("shop"), 1, i)
	}
	h.calls.lostRequests = map[string]int{}
	for range 2 {
		h.advance(time.Minute)
		h.sweep()
	}
	for len(ids) > 0 {
		i := slices.IndexFunc(ids, func(id string) bool { return h.record(id).Attempt.Number > 0 })
		if i < 0 {
			t.Fatal("got no started run, want one")
		}
		// The grant's effects are lost; the sweep repeats them.
		h.calls.lostRequests = map[string]int{"Succeed": 1, "Fail": 1}
		h.exit(ids[i], 0)
		h.calls.lostRequests = map[string]int{}
		for range 2 {
			h.advance(time.Minute)
			h.sweep()
		}
		h.wantState(ids[i], run.Completed)
		ids = slices.Delete(ids, i, i+1)
		h.wantSlots(platform.KeyPool("shop"), min(len(ids), 1), max(len(ids)-1, 0))
	}
	if used, err := h.store.Pools(h.Context()); err != nil || len(used) != 0 {
		t.Errorf("got pools %+v, %v, want none in use", used, err)
	}
}
