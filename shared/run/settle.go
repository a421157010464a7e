package run

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Settled: the machine of an attempt that is over is gone, and its output was
// looked at. It decides what comes of the run: a cancel that was wished makes
// everything Cancelled but a success that is committed before; a success with a
// kept output is Completed; a failure is tried again as far as the budgets go.
type Settled struct {
	// Output is what was kept; nil where there is nothing.
	Output *Output
	// Fault says what is wrong with the output that the worker reported.
	Fault *fault.Fault
	// Exit is how the machine's program ended without being destroyed; nil where
	// nobody knows. Whoever asked the platform to stop the machine has caused
	// what its worker reported as a cancel that nobody wished.
	Exit *Exit
	// Logged: the attempt's log was kept.
	Logged bool
	// Roll is a random number, 0 <= Roll < 1, for the jitter.
	Rand float64
}

func (Settled) acted(Run) bool { return true }

func (f Settled) apply(d *draft) error {
	if d.State != Terminating {
		return nil
	}
	if f.Logged && !slices.Contains(d.Logs, d.Attempt.Number) {
		d.Logs = append(slices.Clone(d.Logs), d.Attempt.Number)
	}
	why := d.Fault
	switch {
	case f.Fault != nil:
		why = f.Fault
	case why != nil && why.Code == fault.WorkerStopped && f.Exit != nil && f.Exit.Requested:
		d.Attempt.Exit, why = f.Exit, lost(f.Exit)
	}
	switch {
	case d.Cancel != nil && why != nil && why.Code == fault.CancelTimeout:
		d.finish(Failed, why.Message, why)
	case d.Cancel != nil:
		why = d.cancelFault()
		d.finish(Cancelled, why.Message, why)
	case d.Attempt.Outcome == OutcomeSucceeded && why == nil && (f.Output != nil || d.Attempt.Report.Upload == nil):
		d.finish(Completed, "", nil)
		d.accept(f.Output)
	default:
		if why == nil {
			why = fault.New(fault.OutputMissing, "the worker reported success without an output")
		}
		f.failed(d, why)
	}
	return nil
}

// keep records the output that was kept; a worker may succeed without one.
func (d *draft) accept(kept *Output) {
	if kept == nil {
		return
	}
	output := *kept
	output.AcceptedAt, output.ExpiresAt = d.now, d.now.Add(d.Policy.OutputRetention)
	d.Output = &output
}

// failed retries or fails. Which budget pays is the fault's: a machine that
// never started spends a further start, one that somebody stopped spends
// nothing, everything else spends an attempt.
func (f Settled) failed(d *draft, why *fault.Fault) {
	d.Fault = why
	retry := d.Policy.Retry
	var again bool
	failures := 1
	switch why.Code {
	case fault.MachineStopped:
		again = true
	case fault.StartTimeout:
		d.Spent.Starts++
		again, failures = d.Spent.Starts <= retry.MaxFurtherStarts, d.Spent.Starts
	default:
		if !d.Attempt.StartedAt.IsZero() {
			d.Spent.Attempts++
		}
		again, failures = d.Spent.Attempts < retry.MaxAttempts && retry.allows(why.Category), d.Spent.Attempts
	}
	if !again || !why.Retryable {
		d.finish(Failed, why.Message, why)
		return
	}
	delay := retry.Delay(failures, f.Rand)
	d.RetryAt = d.now.Add(delay)
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.enter(Retrying, "tried again in "+delay.Round(time.Second).String(), why)
}

// Restarted: the execution ended without the run's end, and a new one is begun
// in its place, once. The second time the run is Orphaned. Several may find the
// same end; the first of them counts.
type Restarted struct {
	// Start is the number of the execution that ended.
	Start int
	// Cause is what the execution's end told.
	Cause string
}

func (f Restarted) apply(d *draft) error {
	if d.State.Terminal() || f.Start != d.Execution.Start {
		return nil
	}
	if d.Execution.Start >= 2 {
		why := fault.New(fault.ExecutionLost, "the execution was lost twice; what it told last: %s", f.Cause)
		d.finish(Orphaned, why.Message, why)
		return nil
	}
	d.release()
	d.effects = nil
	d.Execution.Start++
	d.Execution.Pending = nil
	d.effects = append(d.effects, Effect{
		Kind: EffectStart, Execution: ExecutionName(d.Ref(), d.Execution.Start),
	})
	if d.Slot.State == SlotQueued {
		// The new execution goes to the line at once, and its token is the line's.
		d.await(StepQueued)
	}
	d.emit(Event{Type: EventRestarted, Message: f.Cause})
	return nil
}

// Asked: the sweep has done again what was pending, and the execution goes on.
// Done says that nothing is pending any more. It only moves the time at which
// the sweep asks next.
type ExecutionChecked struct{ Done bool }

func (f ExecutionChecked) apply(d *draft) error {
	d.changed = true
	if f.Done {
		d.Execution.Pending = nil
	}
	return nil
}

// OutputExpiring brings the end of the output's life forward, never back.
type OutputExpiring struct {
	At      time.Time
	Message string
}

func (f OutputExpiring) apply(d *draft) error {
	if d.Output == nil || !f.At.Before(d.Output.ExpiresAt) {
		return nil
	}
	output := *d.Output
	output.ExpiresAt = f.At.UTC()
	d.Output = &output
	d.emit(Event{Type: EventOutputExpiring, Message: f.Message})
	return nil
}

// OutputDeleted: the output's bytes are gone.
type OutputDeleted struct{}

func (OutputDeleted) apply(d *draft) error {
	if d.Output == nil || !d.Output.DeletedAt.IsZero() {
		return nil
	}
	output := *d.Output
	output.DeletedAt = d.now
	d.Output = &output
	d.emit(Event{Type: EventOutputDeleted})
	return nil
}

// LogsDeleted: the logs that were kept of the run are gone.
type LogsDeleted struct{}

func (LogsDeleted) apply(d *draft) error {
	if len(d.Logs) > 0 {
		d.Logs, d.changed = nil, true
	}
	return nil
}
