package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Reported: the worker reported the end of an attempt. It is refused with the
// faults of the worker contract: AttemptMismatch, WorkerMismatch, TaskExpired,
// TaskAlreadyTerminal.
type Reported struct {
	Attempt int
	// WorkerID is the reporting worker; empty for the callback of the export contract, whose
	// workers have no id.
	WorkerID string
	Report   Report
}

func (f Reported) apply(d *draft) error {
	if err := d.current(f.Attempt); err != nil {
		return err
	}
	if old := d.Attempt.Report; old != nil && old.Digest == f.Report.Digest {
		return nil
	}
	if f.WorkerID != "" {
		if err := d.sameWorker(f.WorkerID); err != nil {
			return err
		}
	}
	if !d.isCurrent(f.Attempt) {
		return f.late(d.Run)
	}
	if d.State == ContainerCreating {
		d.enterRunning()
	}
	d.Attempt.Report = &f.Report
	if d.Work.Program != nil {
		d.Attempt.Exit = f.Report.Exit
	}
	defer func() {
		if d.Attempt.WorkerID == "" { // set after endAttempt: this worker has no open heartbeat item
			d.Attempt.WorkerID = f.WorkerID
		}
	}()
	switch {
	case d.Cancel != nil:
		d.endAttempt(OutcomeCancelled, "the worker reported after the cancel", d.cancelFault())
	case f.Report.Success:
		d.endAttempt(OutcomeSucceeded, "the worker reported success", nil)
	case d.Evicted():
		d.endEvicted(OutcomeCancelled, "the worker reported after it was asked to end")
	case f.Report.Outcome == OutcomeCancelled:
		d.endAttempt(OutcomeCancelled, "the worker reported a cancel",
			fault.New(fault.WorkerStopped, "worker reported CANCELLED but no cancel was requested"))
	case d.timedOut(f.Report):
		d.endAtTimeLimit()
	default:
		d.endAttempt(OutcomeFailed, "the worker reported an error", faultOf(d.Work, f.Report, d.Policy.Retry))
	}
	return nil
}

// late returns the error of a report about an attempt that has ended. The first report after a
// cancel request is accepted and ignored, because its output is discarded either way. A worker
// that had to be killed was declared dead, so its report is refused.
func (f Reported) late(r Run) error {
	if r.declaredDead() {
		return r.expired()
	}
	if r.Attempt.Report != nil {
		return fault.New(fault.TaskAlreadyTerminal, "this attempt has already reported another result")
	}
	return nil
}

// Evaluated: a token state timed out, its call failed, or the execution was restarted. The fact
// has the observations of the record and the runner. An attempt is declared dead only if the
// record proves it.
type Evaluated struct {
	// Generation is the generation of the previous state in the execution's input; 0 if the
	// execution has entered no token state. If the record has a later generation, the call is a
	// repetition and changes nothing.
	Generation int
	// Failed: a call of Sortie itself failed, so the evaluation proves nothing about the
	// worker.
	Failed bool
	// Machine is the inspected machine; zero without an inspection. If the attempt uses another
	// machine, Phase, Exit and StartFault are ignored.
	Machine platform.Machine
	// Phase and Exit describe the inspected machine. Phase is "running", "gone", or empty if
	// the inspection proved nothing. Exit is set once the program has ended, even if the
	// machine is not gone yet.
	Phase string
	Exit  *Exit
	// StartFault is the reason why the platform does not start the machine, as in StartFailed;
	// nil if the inspection reported none.
	StartFault *fault.Fault
	// Fallbacks are those of the run's pools, for a run that is starting.
	Fallbacks []platform.Fallback
	// Contact is used in Running if a worker has called.
	Contact
}

func (f Evaluated) acted(r Run) bool { return !repeats(r, f.Generation) }

// repeats reports whether a fact of the execution with this generation comes from a repeated or
// slow call: the execution already waits in a later state. It waits there too while the
// completion of that state's token is pending.
func repeats(r Run, generation int) bool {
	return r.Wait.Token != "" && r.Wait.Generation > generation ||
		slices.ContainsFunc(r.Execution.Pending, func(e Effect) bool { return e.Generation > generation })
}

// The values of Evaluated.Phase that prove something.
const (
	PhaseRunning = "running"
	PhaseGone    = "gone"
)

func (f Evaluated) apply(d *draft) error {
	if repeats(d.Run, f.Generation) {
		return nil
	}
	if f.Machine.Known() && !d.uses(f.Machine) {
		f.Phase, f.Exit, f.StartFault = "", nil, nil
	}
	// A token that is still in the record belongs to the state that was left.
	if d.Wait.Token != "" {
		d.Wait.Token, d.changed = "", true
	}
	if f.Failed {
		d.Spent.Evaluations++
		d.changed = true
	}
	if d.Queued() || d.AwaitsKey() {
		f.reconcileQueued(d)
		return nil
	}
	switch d.State {
	case ActionRunning:
		if d.Acting != nil {
			d.reconcileAction()
		}
	case ContainerCreating:
		return f.reconcileStart(d)
	case Running:
		return f.reconcileRunning(d)
	}
	return nil
}

func (f Evaluated) reconcileQueued(d *draft) {
	if d.throttledLong(f.Fallbacks) {
		return
	}
	switch {
	case d.now.Before(d.QueueBy()):
		d.Attempt.FallbackBy = d.laterFallback()
		d.enterTokenState(StepQueued)
	case d.State == ContainerCreating && d.pastDeadline(d.now):
		why := d.deadlineFault("before the platform permitted a start")
		d.endAttempt(OutcomeFailed, why.Message, why)
	case d.endAtDeadline("in a queue"):
	case d.State == ContainerCreating:
		why := fault.New(fault.QueueTimeout, "the platform permitted no start within %s", d.Policy.QueueTimeout)
		d.endAttempt(OutcomeFailed, why.Message, why)
	default:
		of := "pool " + d.Slot.Pool
		if d.AwaitsKey() {
			of = "key " + d.Concurrency.Key
		}
		why := fault.New(fault.QueueTimeout, "no slot of %s became free within %s", of, d.Policy.QueueTimeout)
		d.finish(Failed, why.Message, why)
	}
}

func (f Evaluated) reconcileStart(d *draft) error {
	switch {
	case f.Phase == PhaseRunning:
		return MachineRunning{d.Attempt.Number}.apply(d)
	case f.StartFault != nil:
		return StartFailed{Attempt: d.Attempt.Number, Fault: f.StartFault, Fallbacks: f.Fallbacks}.apply(d)
	case f.Phase == PhaseGone:
		return MachineGone{Attempt: d.Attempt.Number, Exit: f.Exit}.apply(d)
	case d.pastDeadline(d.now):
		why := d.deadlineFault("before its machine was seen running")
		d.endAttempt(OutcomeFailed, why.Message, why)
		return nil
	case !d.now.Before(d.Attempt.StartBy):
		why := fault.New(fault.StartTimeout,
			"the machine was not seen running within %s", d.Policy.StartTimeout)
		d.recordRefusal(why)
		d.endAttempt(OutcomeFailed, why.Message, why)
		return nil
	}
	if f.Failed {
		d.Attempt.BackoffUntil = d.now.Add(failureDelay(d.Spent.Evaluations))
	}
	d.enterTokenState(StepContainerCreating)
	return nil
}

func (f Evaluated) reconcileRunning(d *draft) error {
	if d.Fan != nil {
		d.reconcileFan()
		return nil
	}
	switch {
	case f.Phase == PhaseGone, d.EndRequest() != nil && f.Exit != nil:
		return MachineGone{Attempt: d.Attempt.Number, Exit: f.Exit}.apply(d)
	case d.Cancel != nil && d.graceOver():
		d.endKilled("the worker did not end within %s of the cancel request and is killed", d.Policy.CancelGrace)
		return nil
	case d.Evicted() && d.graceOver():
		d.endEvicted(OutcomeFailed, fmt.Sprintf("the worker did not end within %s and is killed", d.Policy.CancelGrace))
		return nil
	case d.Cancel != nil && !d.now.Before(d.RunBy()) && !d.Attempt.GraceUntil.IsZero():
		d.endKilled("the attempt reached its time limit during the grace of the cancel request and is killed")
		return nil
	case !d.now.Before(d.RunBy()):
		d.endAtTimeLimit()
		return nil
	case d.EndRequest() != nil:
		d.enterTokenState(StepCancelling)
		return nil
	}
	d.noteExpectedTime()
	switch {
	case d.Attempt.WorkerID == "":
		f.exemptFromHeartbeats(d)
	case f.Failed:
		d.contacted(f.LastAt)
	case f.check(d):
		return nil
	}
	d.enterTokenState(StepRunning)
	return nil
}

// endAtTimeLimit ends an attempt at its time limit, or at the deadline of the run if that is
// earlier.
func (d *draft) endAtTimeLimit() {
	why := fault.New(fault.RunTimeout, "the attempt reached its time limit of %s", d.Policy.TimeLimit)
	if by := d.EndBy(); !by.IsZero() && by.Before(d.Attempt.StartedAt.Add(d.Policy.TimeLimit)) {
		why = d.deadlineFault(fmt.Sprintf("in attempt %d", d.Attempt.Number))
	}
	d.endAttempt(OutcomeFailed, why.Message, why)
}

// exemptFromHeartbeats removes the heartbeat limit of a worker that never called, once its
// first limit has passed.
func (f Evaluated) exemptFromHeartbeats(d *draft) {
	heartbeatBy := d.Attempt.StartedAt.Add(d.Policy.HeartbeatTimeout)
	if d.Attempt.HeartbeatExempt || f.Failed || d.now.Before(heartbeatBy) {
		return
	}
	d.Attempt.HeartbeatExempt = true
	d.emit(Event{
		Type:    EventHeartbeatExempted,
		Message: fmt.Sprintf("no call from the worker within %s; it may not send heartbeats", d.Policy.HeartbeatTimeout),
	})
}

func (d *draft) graceOver() bool {
	return !d.Attempt.GraceUntil.IsZero() && !d.now.Before(d.Attempt.GraceUntil)
}

// failureDelay returns the backoff after n consecutive failures of Sortie's own
// calls: 1 s, doubled, at most a minute.
func failureDelay(n int) time.Duration {
	return retry.Backoff{First: time.Second, Most: time.Minute, Multiplier: 2}.Delay(n - 1)
}

// FailurePause returns how long the execution waits before it resumes after consecutive
// failures of Sortie's own calls; 0 means no wait.
func (r Run) FailurePause() time.Duration {
	if r.Spent.Evaluations == 0 {
		return 0
	}
	return failureDelay(r.Spent.Evaluations)
}

// Abandoned: a handler failed unexpectedly. The execution is in Terminating although the run is
// not.
type Abandoned struct {
	// Generation is as in Evaluated.
	Generation int
	Message    string
}

func (f Abandoned) acted(r Run) bool { return !repeats(r, f.Generation) }

func (f Abandoned) apply(d *draft) error {
	if repeats(d.Run, f.Generation) {
		return nil
	}
	why := fault.New(fault.Internal, "%s", f.Message)
	switch d.State {
	case ContainerCreating, Running:
		d.endAttempt(OutcomeFailed, f.Message, why)
	case PreRun, Retrying:
		if d.State == PreRun {
			d.enter(Pending, "", nil)
		}
		d.finish(Failed, f.Message, why)
	case Terminating, Completed, Failed, Cancelled, Orphaned:
	default:
		d.finish(Failed, f.Message, why)
	}
	return nil
}

// endKilled ends the attempt with CancelTimeout: its worker was or will be killed after a
// cancel request.
func (d *draft) endKilled(format string, args ...any) {
	why := fault.New(fault.CancelTimeout, format, args...)
	d.endAttempt(OutcomeFailed, why.Message, why)
}

// lost returns the fault of a machine that ended before its worker reported.
func lost(exit *Exit) *fault.Fault {
	switch {
	case exit == nil:
		return fault.New(fault.WorkerLost, "the machine is gone and its worker never reported")
	case exit.OOM:
		return fault.New(fault.OutOfMemory, "the worker was killed because its memory was exhausted; give the machine more memory, or the worker less work")
	case exit.Requested:
		return fault.New(fault.MachineStopped, "the machine was stopped from outside; the attempt does not count")
	case exit.Signal != 0:
		return fault.New(fault.WorkerLost, "the worker was ended by signal %d before it reported", exit.Signal)
	}
	return fault.New(fault.WorkerLost, "the worker exited with code %d before it reported", exit.Code)
}
