package run

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Settled: the machine of an attempt that has ended is gone, and its output was checked. A
// success with an accepted output makes the run Completed, even if a cancel was requested after
// the worker's report. A cancel request overrides every other outcome: the run is Failed if its
// worker was killed after the request, and Cancelled otherwise. A failure is retried within the
// budgets.
type Settled struct {
	// Output is the accepted output; nil without an output.
	Output *Output
	// Fault is set if the reported output is missing or invalid.
	Fault *fault.Fault
	// Exit is how the machine's program ended; nil if it is unknown.
	Exit *Exit
	// Destroyed: terminate destroyed the machine, which may have ended the program. If false, a
	// requested stop of the machine explains a report of CANCELLED without a cancel request.
	Destroyed bool
	// MayRun: the machine may still run, because it was not seen gone in time. The run does not
	// fall back then.
	MayRun bool
	// Logged: the log of the attempt is stored, or the output that its worker sent.
	Logged bool
	// PostRunHook is the answer of the post-run hook; nil if it was not called.
	PostRunHook *spec.HookAnswer
	// Rand is a random number, 0 <= Rand < 1, for the jitter.
	Rand float64
}

func (Settled) acted(Run) bool { return true }

func (f Settled) apply(d *draft) error {
	if d.State != Terminating {
		return nil
	}
	defer func() { d.settleFan(f.Output) }()
	f.Destroyed = f.Destroyed || !d.Attempt.DestroyAt.IsZero()
	if f.Logged && !slices.Contains(d.Logs, d.Attempt.Number) {
		d.Logs = append(slices.Clone(d.Logs), d.Attempt.Number)
	}
	d.Attempt.SendsOutput = false
	if d.Work.Program != nil && !f.Destroyed {
		setIfZero(&d.Attempt.Exit, f.Exit)
	}
	why := d.Fault
	switch {
	case f.Fault != nil:
		why = f.Fault
	case why != nil && why.Code == fault.WorkerStopped && f.Exit != nil && f.Exit.Requested && !f.Destroyed:
		d.Attempt.Exit, why = f.Exit, d.lost(f.Exit)
	case why != nil && why.Code == fault.WorkerStopped && f.Exit == nil && !f.Destroyed && !d.Attempt.Machine.Known():
		// The host may have shut down between the creation of the machine and its commit.
		why = fault.New(fault.MachineStopped, "%s, and its machine was never seen: it was stopped from outside", why.Message)
	}
	switch {
	case d.Succeeded() && why == nil && (f.Output != nil || d.Upload() == nil):
		if d.notePostRunHook(f.PostRunHook) {
			why = fault.New(fault.HookRefused, "the critical hook after the run did not allow it: %s", f.PostRunHook.Detail)
			d.finish(Failed, why.Message, why)
			d.accept(f.Output) // the output is stored, and deleted when it expires
			return nil
		}
		d.finish(Completed, "", nil)
		d.accept(f.Output)
	case d.Cancel != nil:
		f.cancelled(d)
	default:
		if why == nil {
			why = fault.New(fault.OutputMissing, "the worker reported success without an output")
		}
		f.failed(d, why)
	}
	return nil
}

// cancelled ends a run that has a cancel request. The exit of the machine corrects the earlier
// decision: a worker that ended by itself but was seen late is Cancelled; a worker that the
// platform killed at the end of the grace is not.
func (f Settled) cancelled(d *draft) {
	why := d.Fault
	timedOut := why != nil && why.Code == fault.CancelTimeout
	setIfZero(&d.Attempt.Exit, f.Exit) // keep the first exit: a later one may be that of the cleanup
	if d.Attempt.Exit != nil && d.Attempt.Report == nil {
		killed := d.Attempt.Exit.killedAfter(d.Cancel.At)
		switch {
		case timedOut && !killed:
			timedOut, d.Attempt.Outcome = false, OutcomeCancelled
		case !timedOut && killed && d.graceOver():
			timedOut, d.Attempt.Outcome = true, OutcomeFailed
			why = fault.New(fault.CancelTimeout,
				"the worker did not end within %s of the cancel request and was killed", d.Policy.CancelGrace)
		}
	}
	if timedOut {
		d.finish(Failed, why.Message, why)
		return
	}
	why = d.cancelFault()
	d.finish(Cancelled, why.Message, why)
}

// accept records the accepted output. kept is nil if the worker succeeded without one.
func (d *draft) accept(kept *Output) {
	if kept == nil {
		return
	}
	output := *kept
	output.AcceptedAt = d.now
	if !d.Held {
		output.ExpiresAt = d.now.Add(d.Policy.OutputRetention)
	}
	d.Output = &output
}

// A run may lose maxStops machines that were stopped from outside. The maximum delay after such
// a stop is at least stopDelay.
const (
	maxStops  = 20
	stopDelay = 5 * time.Minute
)

// failed retries the run or fails it. The fault decides which budget is used. A machine that
// never started uses a further start; a machine that was stopped from outside uses one of
// maxStops. A shutdown of the host and a draining pool use nothing. Everything else uses an
// attempt.
func (f Settled) failed(d *draft, why *fault.Fault) {
	d.Fault = why
	retry := d.Policy.Retry
	stays := ""
	ran := d.FallsBack() && f.programRan()
	switch {
	case ran:
		stays = "does not fall back, because the program ran after all; "
		d.undoFallback()
		why = d.withDetour(lostOf(d.Work, f.Exit))
		d.Fault = why
		setIfZero(&d.Attempt.Exit, f.Exit)
	case f.MayRun && d.FallsBack():
		stays = "does not fall back, because the machine was not seen gone; "
		d.undoFallback()
		why = d.withDetour(why)
		d.Fault = why
	}
	var again bool
	failures := 1
	switch {
	case d.FallsBack():
		again = true // a refused start uses up nothing
	case why.Code == fault.PoolDrained, why.Code == fault.MachineStopped && d.Attempt.Exit != nil && d.Attempt.Exit.Host:
		again = true
	case why.Code == fault.MachineStopped:
		d.Spent.Stops++
		again = d.Spent.Stops <= maxStops
		retry.MaxDelay, failures = max(retry.MaxDelay, stopDelay), d.Spent.Stops
	case why.Code == fault.StartTimeout, d.Attempt.StartedAt.IsZero() && !ran:
		d.Spent.Starts++
		again, failures = d.Spent.Starts <= retry.MaxFurtherStarts, d.Spent.Starts
	default:
		d.Spent.Attempts++
		again, failures = d.Spent.Attempts < retry.MaxAttempts && retry.Allows(why.Category), d.Spent.Attempts
	}
	if !d.fanOver() {
		again, why = true, retryable(why)
	}
	if !again || !why.Retryable && !d.FallsBack() {
		d.notePostRunHook(f.PostRunHook)
		d.finish(Failed, why.Message, why)
		return
	}
	delay := retry.Delay(failures, f.Rand)
	if d.FallsBack() || why.Code == fault.PoolDrained {
		delay = 0
	}
	if last, late := d.retryAfterDeadline(d.now.Add(delay), why); late {
		d.notePostRunHook(f.PostRunHook)
		d.finish(Failed, last.Message, last)
		return
	}
	d.RetryAt = d.now.Add(delay)
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.enter(Retrying, stays+"retried in "+delay.Round(time.Second).String(), why)
	d.actOn(spec.OnRetry, d.Attempt.Number)
}

// programRan reports whether the exit is that of the program. If the machine was destroyed or
// stopped, its exit may have another cause.
func (f Settled) programRan() bool {
	const signals = 128 // shells report 128 + signal
	e := f.Exit
	return e != nil && !e.Requested && !e.Host && (!f.Destroyed || e.Signal == 0 && e.Code > 0 && e.Code < signals)
}

// SlotReleased: the machine of an ended attempt is gone, but its output cannot be checked yet. The
// pool's slot is released before the run is settled.
type SlotReleased struct{ Attempt int }

func (f SlotReleased) acted(r Run) bool {
	return r.State == Terminating && r.Attempt.Number == f.Attempt
}

func (f SlotReleased) apply(d *draft) error {
	if f.acted(d.Run) && d.Slot.State == platform.SlotHeld {
		d.Slot.State, d.Slot.Since, d.changed = "", time.Time{}, true
	}
	return nil
}

// DestroyBegun: the machine of a worker that has reported did not exit, and is destroyed after
// the commit. Another call may be the one that sees it gone.
type DestroyBegun struct{ Attempt int }

func (f DestroyBegun) apply(d *draft) error {
	if d.State == Terminating && d.Attempt.Number == f.Attempt && d.Attempt.DestroyAt.IsZero() {
		d.Attempt.DestroyAt, d.changed = d.now, true
	}
	return nil
}

// Restarted: the execution ended before the run. A new execution replaces it, once; the second
// time the run becomes Orphaned. Only the first report of an end counts.
type Restarted struct {
	// Start is the number of the execution that ended.
	Start int
	// Cause is the cause of the execution's end.
	Cause string
}

func (f Restarted) apply(d *draft) error {
	if d.State.Terminal() || f.Start != d.Execution.Start {
		return nil
	}
	if d.Execution.restarts() > 0 {
		why := fault.New(fault.ExecutionLost, "the execution was lost twice; last cause: %s", f.Cause)
		d.finish(Orphaned, why.Message, why)
		d.Attempt.UploadsLeft = d.Attempt.MachineName != ""
		return nil
	}
	d.startExecution()
	d.emit(Event{Type: EventRestarted, Message: f.Cause})
	return nil
}

// ExecutionChecked: the sweep has repeated the pending effects, and the execution continues.
// Done reports that no effect is pending. The fact only moves the time of the next check.
type ExecutionChecked struct{ Done bool }

func (f ExecutionChecked) apply(d *draft) error {
	d.changed = true
	if f.Done {
		d.effectsDone()
	}
	return nil
}

// RepairFailed: the sweep could not check the execution of an overdue run. The delay of the
// next check grows with each failure, so that such runs do not use up the time of the sweep.
// The fact changes nothing if the run is not overdue.
type RepairFailed struct{}

func (RepairFailed) apply(d *draft) error {
	if d.Execution.ActBy.IsZero() || d.now.Before(d.Execution.ActBy) {
		return nil
	}
	d.Execution.Repairs++
	d.Execution.ActBy = d.now.Add(repairBackoff.Delay(d.Execution.Repairs - 1))
	d.changed = true
	return nil
}

// repairBackoff delays checks of executions and deletions after failures: one minute, doubled
// each time, at most ten.
var repairBackoff = retry.Backoff{First: time.Minute, Most: 10 * time.Minute, Multiplier: 2}
