package run

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// FiringTaskID returns the task id of a run that a firing creates. It depends only on the run
// and the time, so a repeated creation has the same id.
func FiringTaskID(ref Ref, at time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", ref.Tenant, ref.ID))
	return spec.JobTaskID(at, [10]byte(sum[:]))
}

// FiringAt returns the time for FiringTaskID of a new run: its scheduled time, or else now.
func (r Run) FiringAt(now time.Time) time.Time {
	if r.ScheduledAt.IsZero() {
		return now
	}
	return r.ScheduledAt
}

// endsByExit reports whether a program's exit decides about its attempt if its worker has not
// reported. The exit of a machine that was stopped from outside, or ran out of memory, proves
// nothing about the program.
func endsByExit(w spec.Work, exit *Exit) bool {
	return w.Program != nil && w.Program.Completion != spec.CompletionCallback &&
		exit != nil && !exit.OOM && !exit.Requested && !exit.Host
}

// endByExit ends the attempt with the outcome of its program's exit.
func (d *draft) endByExit(exit Exit) {
	codes := d.Work.Program.ExitCodes
	if exit.Signal == 0 && codes.Succeeds(exit.Code) {
		d.endAttempt(OutcomeSucceeded, "the program "+exit.String(), nil)
		return
	}
	why := lostOf(d.Work, &exit)
	d.endAttempt(OutcomeFailed, why.Message, why)
}

// lostOf returns the fault of an attempt whose program ended with the exit and without a report.
func lostOf(w spec.Work, exit *Exit) *fault.Fault {
	if !endsByExit(w, exit) || exit.Signal == 0 && w.Program.ExitCodes.Succeeds(exit.Code) {
		return lost(exit)
	}
	why := fault.New(fault.ProgramExit, "the program %s", exit)
	why.Retryable = !w.Program.ExitCodes.Final(exit.Code)
	return why
}

// String describes the exit for a message.
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("was ended by signal %d", e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// timedOut reports whether the worker stopped its program at the attempt's time limit, or at the
// deadline of the run. It stops
// the program limit.ReportMargin earlier to have time for the report. Its time starts with its
// process, after the create call.
func (d *draft) timedOut(report Report) bool {
	earliest := d.Attempt.IntentAt.Add(d.Policy.TimeLimit - limit.ReportMargin(d.Policy.TimeLimit))
	if by := d.EndBy(); !by.IsZero() {
		if at := by.Add(-limit.ReportMargin(by.Sub(d.Attempt.IntentAt))); at.Before(earliest) {
			earliest = at
		}
	}
	return d.Work.Program != nil && report.Category == fault.Timeout && !d.now.Before(earliest)
}

// faultOf returns the fault of a reported failure. If the report has the exit of a job's
// program, the job's exit codes decide first about a retry, then the worker, then the category.
func faultOf(w spec.Work, report Report, policy spec.Retry) *fault.Fault {
	why := report.fault(policy)
	if w.Program == nil || report.Exit == nil {
		return why
	}
	why.Code = fault.ProgramExit
	switch codes := w.Program.ExitCodes; {
	case codes.Final(report.Exit.Code):
		why.Retryable = false
	case codes.Retries(report.Exit.Code), report.Retryable == nil:
		why.Retryable = policy.Allows(why.Category)
	}
	return why
}

// Upload returns the object that becomes the output of an attempt that succeeded: the reported
// one, or without a report the one at the key in the worker's envelope, if the program has an
// output. It is nil without an output.
func (r Run) Upload() *Upload {
	if report := r.Attempt.Report; report != nil {
		return report.Upload
	}
	if !r.Succeeded() || r.Work.Program == nil || r.Work.Program.Output == nil {
		return nil
	}
	return &Upload{
		Key:      limit.AttemptOutput(r.TaskID, r.Attempt.Number),
		FileName: r.Work.Program.Output.FileName, Size: SizeUnknown,
	}
}
