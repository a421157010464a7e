package simulation

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// check checks the invariants after a step.
func (w *world) check(ctx context.Context) {
	if w.process.crashed {
		return
	}
	held := 0
	records := w.records(ctx)
	known := make(map[string]*run.Run, len(records))
	for _, r := range records {
		known[r.ID] = r
		if r.Slot.State == run.SlotHeld {
			held++
		}
		w.checkStep(r)
		w.checkHeartbeatTimeout(r)
	}
	if limit := w.config.MaxMachines; limit > 0 && held > limit {
		w.fail("got %d held slots, want at most %d", held, limit)
	}
	queued := 0
	for _, p := range w.rows.pools {
		queued += p.Queued
		if w.config.MaxMachines > 0 && p.Held != held {
			w.fail("got %d leases, want %d for the runs that hold a slot", p.Held, held)
		}
	}
	w.checkMachines(known)
	if w.plan.reliable() && w.plan.slowCommits == 0 {
		w.checkLatency(known, held, queued)
	}
}

// maxIdle limits the time that a slot is free while a run is queued. maxCleanup
// limits the cleanup of an attempt whose machine is not stuck.
const (
	maxIdle    = time.Second
	maxCleanup = 40 * time.Second
)

// checkLatency checks, where Sortie itself has no faults, that commits wake
// waiting runs at once instead of leaving them to time limits and the sweep.
func (w *world) checkLatency(known map[string]*run.Run, held, queued int) {
	switch {
	case queued == 0 || held == w.config.MaxMachines || w.plan.throttles > 0:
		w.idleSince = time.Time{}
	case w.idleSince.IsZero():
		w.idleSince = w.time.now
	case w.time.now.Sub(w.idleSince) > maxIdle:
		w.fail("%d runs are queued with %d of %d slots held", queued, held, w.config.MaxMachines)
	}
	for _, r := range known {
		w.checkCancel(r)
		if took := w.time.now.Sub(r.EnteredAt); r.State == run.Terminating && took > maxCleanup && w.plan.stuck == 0 {
			w.fail("%s is in Terminating for %s", r.ID, took)
		}
	}
}

// maxUnwanted limits the life of a machine after its attempt: two sweeps, and
// the delays of the platform.
const maxUnwanted = 2*sweepEvery + 4*time.Minute

func (w *world) checkMachines(known map[string]*run.Run) {
	for i := range w.machines.created {
		m := w.machines.byID[fmt.Sprintf("m%d", i+1)]
		r, ok := known[m.spec.Owner.RunID]
		wanted := ok && r.State.HasMachine() && r.Attempt.Number == m.spec.Owner.Attempt && (!r.Attempt.Machine.Known() || r.Attempt.Machine.ID == m.id)
		switch {
		case !ok || !m.alive() || wanted:
			m.unwantedAt = time.Time{}
			continue
		case m.unwantedAt.IsZero():
			m.unwantedAt = w.time.now
		}
		since := m.unwantedAt
		if w.upSince.After(since) {
			since = w.upSince
		}
		if age := w.time.now.Sub(since); age > maxUnwanted && !w.unreliable() {
			w.fail("%s of attempt %d of %s runs %s after its attempt", m.id, m.spec.Owner.Attempt, r.ID, age)
		}
	}
}

// unreliable reports whether several sweeps in a row may fail.
func (w *world) unreliable() bool { return w.plan.lostCalls > 0.05 || w.plan.lostCommits > 0.05 }

// checkEnd checks what remains after the last run has ended.
func (w *world) checkEnd(ctx context.Context) {
	if w.process.crashed {
		if err := w.restart(ctx); err != nil {
			w.fail("%v", err)
			return
		}
	}
	for _, task := range w.acceptedTasks {
		if _, err := w.process.store.Find(ctx, client.Tenant, task); err != nil {
			w.fail("accepted run %s is lost: %v", task, err)
		}
	}
	w.checkList(ctx)
	records := w.records(ctx)
	if len(records) > w.requested+w.retried {
		w.fail("got %d runs for %d requests", len(records), w.requested)
	}
	for _, r := range records {
		w.checkRun(ctx, r)
	}
	if len(w.problems) > 0 {
		return
	}
	for _, m := range w.machines.byID {
		if m.alive() {
			w.fail("machine %s still runs", m.id)
		}
	}
	// Workers upload while their machine runs, and the bucket is cleared after
	// the machine is seen gone. Exceptions are a machine whose creation was not
	// reported and that ends before a sweep sees it, and an orphan whose
	// uploads could not be removed at once. The lifecycle rule of the bucket
	// removes those.
	allowed, left := w.unknownMachines, len(w.buckets.buckets[port.Uploads])
	for _, r := range records {
		if report := r.Attempt.Report; r.State == run.Completed && report.Upload == nil {
			left -= w.uploads(r.TaskID) // uploads that a worker does not report are not removed
		}
		if r.State == run.Orphaned && w.plan.lostCalls > 0 {
			allowed++
		}
	}
	if left > allowed {
		w.fail("got %d uploads left in the bucket", left)
	}
}

// uploads counts the uploads of a task.
func (w *world) uploads(task string) (count int) {
	for key := range w.buckets.buckets[port.Uploads] {
		if strings.HasPrefix(key, limit.OutputPrefix(task)) {
			count++
		}
	}
	return count
}

func (w *world) checkRun(ctx context.Context, r *run.Run) {
	if !r.State.Terminal() {
		w.fail("%s has not ended: %s", r.ID, r.State)
		return
	}
	events, err := w.process.store.Events(ctx, r.Ref(), 0, 1000)
	if err != nil {
		w.fail("cannot read the events of %s: %v", r.ID, err)
	}
	ends := 0
	for i, e := range events {
		if e.Seq != i+1 {
			w.fail("events of %s have a gap at %d", r.ID, i+1)
		}
		if e.From == e.State || i == 0 {
			continue
		}
		if e.From != events[i-1].State || !e.From.CanBecome(e.State) {
			w.fail("illegal transition of %s from %s to %s", r.ID, e.From, e.State)
		}
		if e.State.Terminal() {
			ends++
		}
	}
	if ends != 1 || len(events) != r.EventCount {
		w.fail("%s: got %d terminal events in %d events, want 1 in %d", r.ID, ends, len(events), r.EventCount)
	}
	if w.plan.unforeseen+w.plan.aborts == 0 && (r.Execution.Start-r.Execution.HandOvers > 1 || r.Fault != nil && r.Fault.Code == fault.Internal) {
		w.fail("%s ended by an internal error or a restart: %v", r.ID, r.Fault)
	}
	w.checkOutcome(r)
	var output []byte
	accepted := false
	for key, body := range w.buckets.buckets[port.Accepted] {
		if strings.HasPrefix(key, limit.OutputPrefix(r.TaskID)) {
			accepted = true
			if r.Output != nil && r.Output.Key == key {
				output = body
			}
		}
	}
	switch {
	case r.Output != nil && !bytes.Equal(output, outputOf(r.TaskID, r.Attempt.Number)):
		w.fail("%s: got output %q, want that of accepted attempt %d", r.ID, output, r.Attempt.Number)
	case r.Output == nil && accepted:
		w.fail("%s has an accepted object without an output", r.ID)
	case r.State == run.Completed && !w.attempt(r.TaskID, r.Attempt.Number).succeeded && !w.mayLoseResponses():
		w.fail("%s is Completed without an acknowledged success", r.ID)
	}
}

// mayLoseResponses reports whether a commit can succeed without a response.
func (w *world) mayLoseResponses() bool {
	return !w.plan.reliable()
}
