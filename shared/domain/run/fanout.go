package run

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// fanLimit is the time limit of a run with children. Policy.TimeLimit applies to each child.
const fanLimit = 30 * 24 * time.Hour

// FansOut reports whether the run has children instead of a machine.
func (r Run) FansOut() bool { return r.Work.Fan != nil }

// Listed is the name under which the runs of a job are listed: the children of runs are apart, so that
// a list of one kind reads none of the other. No job has the name of the children.
func Listed(jobID string, children bool) string {
	if children {
		return jobID + "/children"
	}
	return jobID
}

// HasParent reports whether the run is a child that its parent counts.
func (r Run) HasParent() bool { return r.Child != nil && r.Child.Parent != "" }

// ChildOf returns a child of the run, without its task id. at is the time of its creation. It has
// the work and the limits of r. Constraints, actions, the key and what comes after are those of
// the parent alone.
func (r Run) ChildOf(number int, item fan.Item, at time.Time) Run {
	work := r.Work
	work.Fan = nil
	child := Run{
		Tenant: r.Tenant, ID: fan.RunID(r.ID, number), Workspace: r.Workspace, BatchID: r.BatchID,
		CorrelationID: r.CorrelationID, CreatedBy: r.CreatedBy, Exec: r.Exec, PayloadDigest: r.PayloadDigest, TraceParent: r.TraceParent,
		Work: work, Policy: r.Policy, JobID: r.JobID, JobVersion: r.JobVersion, Trigger: TriggerFan,
		Parameters: r.Parameters, Labels: r.Labels, Inputs: r.Inputs, Event: r.Event, RetriedAt: r.Scheduled(),
		Priority: r.Priority, Override: spec.Override{Priority: r.Override.Priority}, Slot: platform.Slot{Pool: r.ownPool()},
		Lineage: append(slices.Clone(r.Lineage), r.JobID), ParentRun: r.ID,
		Child: &fan.Child{Parent: r.ID, Number: number, Item: item},
	}
	child.TaskID = FiringTaskID(child.Ref(), r.CreatedAt)
	child.Policy.Newest = 0
	child.Policy.RecordRetention = max(child.Policy.RecordRetention, childRetention)
	if by := r.EndBy(); !by.IsZero() {
		// It is one that a request may have, because a retry repeats it.
		child.Policy.Deadline = max(by.Sub(at).Truncate(time.Second), limit.MinDeadline)
	}
	if r.Graph != nil {
		place := *r.Graph
		place.Upstream = make([]Parent, len(r.Graph.Upstream))
		for i, u := range r.Graph.Upstream {
			place.Upstream[i] = u
			place.Upstream[i].Result = nil // it would be stored with each child
		}
		child.Graph = &place
	}
	return child
}

// childRetention is how long the record of a child is kept at least, so that its parent counts it.
// shedChildAfter is how long it is kept in a store that is full.
const (
	childRetention = 24 * time.Hour
	shedChildAfter = 10 * fan.CheckEvery
)

// ChildEnd returns how a child ended; ok is false for a run that has not. A child that could not
// be created, because its pool is gone or its queue is full, has failed.
func (r Run) ChildEnd() (end fan.End, ok bool) {
	switch {
	case !r.State.Terminal():
		return 0, false
	case r.State == Cancelled:
		return fan.Cancelled, true
	case r.Missed != nil && r.Missed.Reason == SkipUpstreamCancelled:
		return fan.Skipped, true
	case r.State == Completed && !r.Skipped:
		return fan.Succeeded, true
	}
	return fan.Failed, true
}

// FanBegun: the items of a run with children are known and stored. The first children start. It
// changes nothing if the attempt has ended.
type FanBegun struct {
	Attempt int
	// Total is the number of items. List is the digest of the stored list.
	Total int
	List  string
}

func (f FanBegun) apply(d *draft) error {
	if !d.FansOut() || f.Attempt != d.Attempt.Number || d.State != ContainerCreating || d.Queued() {
		return nil
	}
	if d.Fan == nil { // an earlier attempt may have begun
		children := d.Work.Fan.Begun(f.List)
		progress := children.Begin(f.Total, d.now)
		d.Work.Fan, d.Fan = &children, &progress
	}
	d.Attempt.CreateBy, d.Attempt.HeartbeatExempt = time.Time{}, true
	d.enterRunning()
	d.endFan()
	return nil
}

// FanFailed: the run has no valid list of items. It is not retried.
type FanFailed struct {
	Attempt int
	Fault   *fault.Fault
}

func (f FanFailed) apply(d *draft) error {
	if d.FansOut() && f.Attempt == d.Attempt.Number && d.State == ContainerCreating && !d.Queued() {
		d.Attempt.CreateBy = time.Time{}
		d.endAttempt(OutcomeFailed, f.Fault.Message, notRetryable(f.Fault))
	}
	return nil
}

// ChildrenEnded: children of the run have ended. The next ones start. An end that is already
// counted changes nothing. The run ends with the last child.
type ChildrenEnded struct {
	Ends []fan.ChildEnd
	// Verified, if positive, is the number of children of which each has or had a run. The fact
	// then ends a check of all active children.
	Verified int
}

func (f ChildrenEnded) apply(d *draft) error {
	if !d.FansOut() || d.Fan == nil {
		return nil
	}
	before, after := *d.Fan, *d.Fan
	if d.State.Terminal() {
		after = after.Stop(fan.StopCancelled) // an orphaned run starts no further children
	}
	after = d.Work.Fan.Count(after, f.Ends)
	checked := f.Verified > 0 && !d.State.Terminal()
	if checked {
		after.Verified, after.CheckBy = max(after.Verified, f.Verified), d.now.Add(fan.CheckEvery)
	}
	if !checked && len(before.Active) == len(after.Active) && before.Started == after.Started {
		return nil
	}
	d.Fan, d.changed = &after, true
	if d.State.Terminal() {
		return nil
	}
	if before.Tenths() != after.Tenths() || before.Stopped != after.Stopped {
		d.emit(Event{Type: EventChildrenProgressed, Message: after.Counts().String()})
	}
	if before.Stopped != after.Stopped && d.Work.Fan.CancelsActive(after) {
		d.reconcileChildren()
	}
	d.endFan()
	return nil
}

// stopFan makes no further child start, and cancels the active ones.
func (d *draft) stopFan(why fan.Stop) {
	stopped := d.Fan.Stop(why)
	d.Fan, d.changed = &stopped, true
	d.reconcileChildren()
	d.endFan()
}

// reconcileChildren adds the effect that creates or cancels the active children.
func (d *draft) reconcileChildren() {
	if len(d.Fan.Active) > 0 {
		d.effects = append(d.effects, Effect{Kind: EffectChildren})
	}
}

// endFan ends the attempt of a run whose children have all ended.
func (d *draft) endFan() {
	if d.State != Running || !d.Fan.Over() {
		return
	}
	counts := d.Fan.Counts()
	switch {
	case d.Cancel != nil:
		d.endAttempt(OutcomeCancelled, counts.String(), d.cancelFault())
	case d.Fan.Stopped == fan.StopDeadline && counts.Succeeded < counts.Total:
		why := d.deadlineFault("with " + counts.String())
		if d.EndBy().IsZero() {
			why = fault.New(fault.RunTimeout, "the children took longer than %s", fanLimit)
		}
		d.endAttempt(OutcomeFailed, why.Message, notRetryable(why))
	case d.Work.Fan.Exceeded(*d.Fan):
		why := fault.New(fault.ChildrenFailed, "%d children failed, want at most %d: %s", counts.Failed+counts.Cancelled, d.Work.Fan.MaxFailures, counts)
		d.endAttempt(OutcomeFailed, why.Message, why)
	default:
		d.endAttempt(OutcomeSucceeded, counts.String(), nil)
	}
}

// reconcileFan continues a run with children after the time limit of its state, or the failure of
// a call.
func (d *draft) reconcileFan() {
	if !d.now.Before(d.RunBy()) && d.Fan.Stopped == "" {
		d.stopFan(fan.StopDeadline)
	}
	d.endFan()
	if d.State == Running {
		d.noteExpectedTime()
		d.enterTokenState(StepRunning)
	}
}

// fanRoute returns how long the execution of a run with children waits.
func (r Run) fanRoute(until, now time.Time) time.Duration {
	if r.Fan.Stopped != "" {
		return time.Hour
	}
	return until.Sub(now)
}

// fanOver reports whether a failed attempt of a run with children may be its last: its children
// have ended, or none has started.
func (r Run) fanOver() bool { return r.Fan == nil || r.Fan.Over() }

// settleFan accepts the results of the children with the end of the run, whatever it is.
func (d *draft) settleFan(results *Output) {
	if d.FansOut() && d.State.Terminal() {
		d.accept(results)
	}
}

// notifyParent adds the effect that counts an ended child.
func (d *draft) notifyParent() {
	switch {
	case d.HasParent():
		d.effects = append(d.effects, Effect{Kind: EffectChildren})
	case d.Fan != nil:
		d.reconcileChildren()
	}
}

// itemValue returns the value of a template about the item of a child.
func (r Run) itemValue(name string) (value string, ok bool) {
	var item fan.Item
	if r.Child != nil {
		item = r.Child.Item
	}
	if axis, of := strings.CutPrefix(name, spec.MatrixPrefix); of {
		return item.Matrix[axis], true
	}
	switch name {
	case spec.ItemName:
		return item.Text, true
	case spec.ItemIndexName:
		return strconv.Itoa(item.Index), true
	}
	return "", false
}
