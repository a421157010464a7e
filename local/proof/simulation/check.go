package simulation

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/capacity"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// check checks the invariants after an event.
func (w *world) check() {
	if w.Process.Crashed || w.Broken != nil {
		return
	}
	w.checkChanges()
	// With many runs, compare them with the time only once a second.
	if len(w.Records.Ordered) > 10 && w.Time.Now.Sub(w.checkedAt) < time.Second {
		return
	}
	w.checkedAt = w.Time.Now
	w.checkSlots()
	w.checkMachines()
	w.CheckWarm()
	w.CheckFleet()
	w.checkPrompt()
	w.checkDueJobs()
	w.checkItemsInTime()
}

// checkChanges checks the data stored since the last check.
func (w *world) checkChanges() {
	w.Events.Refresh()
	w.refreshJobs()
	changed := w.Refresh()
	w.checkFirings(changed)
	w.NoteTurns(changed)
	for _, id := range w.jobIDs {
		if m := w.jobs[id]; m != nil && len(changed) > 0 {
			w.noteUse(m)
		}
	}
	for _, r := range changed {
		if w.Last[r.ID] == nil {
			w.checkGraph(r)
		}
		w.noteCancelled(w.Last[r.ID], r)
		w.checkChange(w.Last[r.ID], r)
	}
	for _, r := range changed {
		w.Last[r.ID] = r
	}
	w.checkFanOut(changed)
	w.checkDated(changed)
	w.checkItems(changed)
}

// checkSlots compares the leases of the pools with the runs.
func (w *world) checkSlots() {
	pools := w.PoolUse()
	if !w.leasesDifferSince.IsZero() { // the sweep changes leases without a commit of a run
		w.ReadPools()
	}
	leased := map[string]capacity.Use{}
	for _, p := range w.Records.Pools {
		if p.Held+p.Queued > 0 {
			leased[p.Pool] = capacity.Use{Held: p.Held, Queued: p.Queued}
		}
	}
	same := maps.Equal(leased, pools)
	switch {
	case same:
		w.leasesDifferSince = time.Time{}
	case w.leasesDifferSince.IsZero():
		w.leasesDifferSince = w.Time.Now
	}
	// The sweep corrects differences.
	bound := 2*w.Config.SweepInterval + time.Minute
	if late := w.Overdue(w.leasesDifferSince, bound, bound+20*w.Config.SweepInterval); late > 0 || !same && !w.Home.SurvivesCrash() {
		w.Fail("got the pools %v, want %v by the records", w.Records.Pools, pools)
	}
}

// checkEnd checks the remaining data after the last run has ended.
func (w *world) checkEnd(ctx context.Context) {
	w.Home.Settle()
	for _, task := range w.acceptedTasks {
		if _, err := w.Process.Store.Find(ctx, harness.Client.Tenant, task); err != nil {
			w.Fail("accepted run %s is lost: %v", task, err)
		}
	}
	w.CheckList(ctx)
	w.checkGraphEnds()
	w.checkFanOutEnds()
	w.checkDatedEnds()
	w.checkItemEnds()
	records := w.Records.Ordered
	exports := 0
	for _, r := range records {
		if r.Work.Kind == spec.KindExport {
			exports++
		}
	}
	if exports > w.Requests+w.retried {
		w.Fail("got %d exports for %d requests", exports, w.Requests)
	}
	for _, r := range records {
		w.checkRun(ctx, r)
	}
	if len(w.Problems) > 0 {
		return
	}
	for _, m := range w.Machines.Live {
		w.Fail("machine %s still runs", m.ID)
	}
	for _, m := range w.Machines.Kept {
		w.Fail("machine %s is still kept", m.ID)
	}
	// Workers upload while their machine runs, and Sortie clears the bucket when it has seen
	// the machine gone. There is one exception: a machine whose creation was not reported and
	// that ends before a sweep lists it. The bucket's lifecycle rule removes its uploads.
	allowed, left := w.UnknownMachines, len(w.Buckets.Buckets[port.Uploads])
	for _, r := range records {
		if report := r.Attempt.Report; r.State == run.Completed && (report == nil || report.Upload == nil) {
			left -= w.uploads(r.TaskID) // unreported uploads are not removed
		}
	}
	if left > allowed {
		w.Fail("got %d uploads left in the bucket, want at most %d: %v", left, allowed, slices.Sorted(maps.Keys(w.Buckets.Buckets[port.Uploads])))
	}
}

// uploads counts the uploads of a task.
func (w *world) uploads(task string) (count int) {
	for key := range w.Buckets.Buckets[port.Uploads] {
		if strings.HasPrefix(key, limit.OutputPrefix(task)) {
			count++
		}
	}
	return count
}

func (w *world) checkRun(ctx context.Context, r *run.Run) {
	if !r.State.Terminal() {
		w.Fail("%s has not ended: %s", r.ID, r.State)
		return
	}
	events, err := w.Process.Store.Events(ctx, r.Ref(), 0, 1000)
	if err != nil {
		w.Fail("cannot read the events of %s: %v", r.ID, err)
	}
	ends := 0
	for i, e := range events {
		if e.Seq != i+1 {
			w.Fail("events of %s have a gap at %d", r.ID, i+1)
		}
		if e.From == e.State || i == 0 {
			continue
		}
		if e.From != events[i-1].State || !e.From.CanBecome(e.State) {
			w.Fail("illegal transition of %s from %s to %s", r.ID, e.From, e.State)
		}
		if e.State.Terminal() {
			ends++
			if skip := e.Type == run.EventSkipped; skip != r.Skipped {
				w.Fail("%s ended with %s, skipped=%t", r.ID, e.Type, r.Skipped)
			}
		}
	}
	if r.Missed != nil && len(events) > 0 && events[0].Type == run.EventSkipped { // the record of skipped times begins with its end
		ends++
	}
	if ends != 1 || len(events) != r.EventCount {
		w.Fail("%s: got %d terminal events in %d events, want 1 in %d", r.ID, ends, len(events), r.EventCount)
	}
	if w.Plan.Unforeseen+w.Plan.Aborts == 0 && (r.Execution.Start-r.Execution.HandOvers > 1 || r.Fault != nil && r.Fault.Code == fault.Internal) {
		w.Fail("%s ended by an internal error or a restart: %v", r.ID, r.Fault)
	}
	w.checkOutcome(r)
	w.CheckDetours(r, events)
	w.checkActions(ctx, r)
	var output []byte
	accepted := false
	for key, body := range w.Buckets.Buckets[port.Accepted] {
		if strings.HasPrefix(key, limit.OutputPrefix(r.TaskID)) {
			accepted = true
			if r.Output != nil && r.Output.Key == key {
				output = body
			}
		}
	}
	switch {
	case r.Output != nil && r.Output.DeletedAt.IsZero() && !r.FansOut() && !bytes.Equal(output, machines.OutputOf(r.TaskID, r.Attempt.Number)):
		w.Fail("%s: got output %q, want that of accepted attempt %d", r.ID, output, r.Attempt.Number)
	case r.Output == nil && accepted:
		w.Fail("%s has an accepted object without an output", r.ID)
	case r.State == run.Completed && !r.FansOut() && !w.succeeded(r) && !w.mayLoseResponses():
		w.Fail("%s is Completed without an acknowledged success", r.ID)
	}
}

// succeeded reports whether the last attempt of a run was seen to succeed, or whether the run
// was skipped.
func (w *world) succeeded(r *run.Run) bool {
	of := w.Attempt(r.TaskID, r.Attempt.Number)
	return r.Skipped || of.Succeeded || of.ExitedZero && r.Work.Program != nil
}

// mayLoseResponses reports whether a commit can succeed without a response.
func (w *world) mayLoseResponses() bool {
	return !w.Plan.Reliable()
}

// checkOutcome compares a run's final state with the acknowledged cancel
// requests and reports.
func (w *world) checkOutcome(r *run.Run) {
	stateAtCancel, requested := w.cancelled[r.TaskID]
	switch {
	case !requested:
	case stateAtCancel.Terminal() && r.State != stateAtCancel:
		w.Fail("cancel of %s was answered with %s, and the run ended as %s", r.ID, stateAtCancel, r.State)
	case stateAtCancel.Terminal(), r.State == run.Cancelled, r.State == run.Orphaned:
	case r.State == run.Failed && r.Fault.Code == fault.CancelTimeout:
	case stateAtCancel == run.Terminating && (r.State == run.Completed || violated(r, spec.PostRunHook) && r.Fault.Code == fault.HookRefused):
		// The success was committed first.
	default:
		w.Fail("cancel of %s was acknowledged, and the run ended as %s: %v", r.ID, r.State, r.Fault)
	}
	for n := 1; n <= r.Attempt.Number; n++ {
		if of := w.Attempt(r.TaskID, n); !of.Succeeded || of.DefectiveOutput || r.State == run.Orphaned {
			continue
		}
		if r.Fault != nil && r.Fault.Code == fault.HookRefused && r.Constraints.PostRunHook.Critical {
			continue // a critical hook may refuse a success
		}
		if r.State != run.Completed || r.Attempt.Number != n {
			w.Fail("attempt %d of %s was acknowledged as %s, and the run ended as %s in attempt %d: %v",
				n, r.ID, contract.OutcomeSucceeded, r.State, r.Attempt.Number, r.Fault)
		}
	}
}
