package run

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Reported: the worker told the end of an attempt. The faults that refuse it
// are those of the worker contract: AttemptMismatch, WorkerMismatch,
// TaskExpired, TaskAlreadyTerminal.
type Reported struct {
	Attempt int
	// WorkerID is who says so; empty in the export contract's words, in which
	// workers have no names.
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
		d.begin()
	}
	d.Attempt.Report = &f.Report
	defer func() {
		if d.Attempt.WorkerID == "" { // set last: no item of it is open
			d.Attempt.WorkerID = f.WorkerID
		}
	}()
	switch {
	case d.Cancel != nil:
		d.endAttempt(OutcomeCancelled, "the worker reported after the cancel", d.cancelFault())
	case f.Report.Success:
		d.endAttempt(OutcomeSucceeded, "the worker reported success", nil)
	case f.Report.Outcome == OutcomeCancelled:
		d.endAttempt(OutcomeCancelled, "the worker reported a cancel",
			fault.New(fault.WorkerStopped, "the worker stopped as if it was cancelled, and nobody had wished it"))
	default:
		d.endAttempt(OutcomeFailed, "the worker reported an error", f.Report.fault(d.Policy.Retry))
	}
	return nil
}

// late answers a report about an attempt that is over. The first one after a
// cancel is taken note of by nobody: its output is discarded either way. A
// worker that had to be killed was declared dead.
func (f Reported) late(r Run) error {
	if r.declaredDead() {
		return r.expired()
	}
	if r.Attempt.Report != nil {
		return fault.New(fault.TaskAlreadyTerminal, "this attempt has reported otherwise before")
	}
	return nil
}

// Judged: a token state's time is up, its call failed, or the execution was
// started again, and this is what the record and the runner tell. Reconciling is
// suspicion turned into proof: nothing is declared dead that the record does
// not show to be.
type Evaluated struct {
	// Generation is that of the state which was left, as the execution carries
	// it; 0 where nobody knows. A record that has the token of a later one has
	// been judged before, and the execution went on: nothing changes.
	Generation int
	// Failed: a call of this software failed, so nothing was learned about the
	// worker.
	Failed bool
	// Phase and Exit tell the machine, where it was looked up: "running",
	// "gone", or empty for anything that proves nothing.
	Phase string
	Exit  *Exit
	// Heard is when the worker's last call was received, as the item of its
	// heartbeats has it; zero where none is open.
	LastContactAt time.Time
	// Since is since when calls can be received. Blind says that this is not
	// known at this time, so that a silence proves nothing.
	ReceptionSince   time.Time
	ReceptionUnknown bool
}

func (f Evaluated) acted(r Run) bool { return !repeats(r, f.Generation) }

// repeats says whether a fact of the execution that carries this generation is of
// a call that was made again, or was slow: the execution waits in a later state.
func repeats(r Run, generation int) bool {
	return generation > 0 && r.Wait.Token != "" && r.Wait.Generation > generation
}

// Phases of a machine that prove something to Judged.
const (
	PhaseRunning = "running"
	PhaseGone    = "gone"
)

func (f Evaluated) apply(d *draft) error {
	if repeats(d.Run, f.Generation) {
		return nil
	}
	// Whatever token the record still has is the one of the state that was left.
	if d.Wait.Token != "" {
		d.Wait.Token, d.changed = "", true
	}
	if f.Failed {
		d.Spent.Evaluations++
		d.changed = true
	}
	switch d.State {
	case Pending:
		f.reconcileQueued(d)
	case ContainerCreating:
		return f.reconcileStart(d)
	case Running:
		return f.reconcileRunning(d)
	}
	return nil
}

func (f Evaluated) reconcileQueued(d *draft) {
	if d.Slot.State != SlotQueued {
		return
	}
	if !d.now.Before(d.QueueBy()) {
		why := fault.New(fault.QueueTimeout,
			"no slot of pool %s became free within %s", d.Slot.Pool, d.Policy.QueueTimeout)
		d.finish(Failed, why.Message, why)
		return
	}
	d.await(StepQueued)
}

func (f Evaluated) reconcileStart(d *draft) error {
	switch {
	case f.Phase == PhaseRunning:
		return MachineRunning{d.Attempt.Number}.apply(d)
	case f.Phase == PhaseGone:
		return MachineGone{d.Attempt.Number, f.Exit}.apply(d)
	case !d.now.Before(d.Attempt.StartBy):
		why := fault.New(fault.StartTimeout,
			"the machine was not seen running within %s", d.Policy.StartTimeout)
		d.endAttempt(OutcomeFailed, why.Message, why)
		return nil
	}
	if f.Failed {
		d.Attempt.BackoffUntil = d.now.Add(failureDelay(d.Spent.Evaluations))
	}
	d.await(StepContainerCreating)
	return nil
}

func (f Evaluated) reconcileRunning(d *draft) error {
	switch {
	case f.Phase == PhaseGone:
		return MachineGone{d.Attempt.Number, f.Exit}.apply(d)
	case d.Cancel != nil && d.graceOver():
		why := fault.New(fault.CancelTimeout,
			"the worker did not end within %s of the cancel and is killed", d.Policy.CancelGrace)
		d.endAttempt(OutcomeCancelled, why.Message, why)
		return nil
	case !d.now.Before(d.RunBy()):
		why := fault.New(fault.RunTimeout, "the attempt reached its time limit of %s", d.Policy.TimeLimit)
		d.endAttempt(OutcomeFailed, why.Message, why)
		return nil
	case d.Cancel != nil:
		d.await(StepCancelling)
		return nil
	}
	if d.Attempt.WorkerID == "" {
		f.exemptFromHeartbeats(d)
	} else if lastContact := f.checkHeartbeat(d); lastContact {
		return nil
	}
	d.await(StepRunning)
	return nil
}

// judgeUnheard waives the heartbeat limit of a worker that was never heard, when
// the first one is over.
func (f Evaluated) exemptFromHeartbeats(d *draft) {
	heartbeatBy := d.Attempt.StartedAt.Add(d.Policy.HeartbeatTimeout)
	if d.Attempt.HeartbeatExempt || f.Failed || d.now.Before(heartbeatBy) {
		return
	}
	d.Attempt.HeartbeatExempt = true
	d.emit(Event{
		Type:    EventHeartbeatExempted,
		Message: fmt.Sprintf("the worker was not heard within %s and may not know heartbeats", d.Policy.HeartbeatTimeout),
	})
}

// judgeSilence ends the attempt of a worker that was heard and then no more, and
// says so. The commit is only good while its last call is still the last. Where
// it could not have been heard, it has the whole limit again.
func (f Evaluated) checkHeartbeat(d *draft) (dead bool) {
	lastContact := d.Attempt.LastContactAt
	if f.LastContactAt.After(lastContact) {
		lastContact = f.LastContactAt
	}
	if f.ReceptionSince.After(lastContact) {
		lastContact = f.ReceptionSince
	}
	switch {
	case f.Failed:
	case f.ReceptionUnknown:
		lastContact = d.now
	case !d.now.Before(lastContact.Add(d.Policy.HeartbeatTimeout)):
		why := fault.New(fault.HeartbeatTimeout, "worker %s was not heard for %s", d.Attempt.WorkerID, d.Policy.HeartbeatTimeout)
		d.endAttempt(OutcomeFailed, why.Message, why)
		d.heartbeat.Evaluated = f.LastContactAt
		return true
	}
	d.Attempt.LastContactAt = lastContact
	return false
}

func (d *draft) graceOver() bool {
	return !d.Attempt.GraceUntil.IsZero() && !d.now.Before(d.Attempt.GraceUntil)
}

// failureDelay is the pause after the n-th failure of ours in a row: 1 s,
// doubled, at most a minute.
func failureDelay(n int) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 10), time.Minute)
}

// FailurePause is how long the execution should pause before it goes back
// where the record stands, after failures of ours in a row; 0 for none.
func (r Run) FailurePause() time.Duration {
	if r.Spent.Evaluations == 0 {
		return 0
	}
	return failureDelay(r.Spent.Evaluations)
}

// Abandoned: a handler failed in a way that nobody foresaw, and the execution
// has come to Terminating with a run that is not there yet.
type Abandoned struct {
	// Generation is as Judged has it.
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
