package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// WorkerContacted: a worker called started, or sent a heartbeat while no item of its attempt waited
// for one. The first worker that calls becomes the attempt's worker. Its call implies the start,
// and from then on the heartbeat limit applies. A call is refused with the faults of the worker
// contract.
type WorkerContacted struct {
	Attempt  int
	WorkerID string
	// Started distinguishes the two calls, which are refused with different faults.
	Started bool
	// Replica is the value for Attempt.Replica; empty if the worker is not a dispatcher.
	Replica string
	// HandlesSigterm: the worker ends gracefully on SIGTERM.
	HandlesSigterm bool
	// SendsOutput: the worker sends its output while it runs.
	SendsOutput bool
	// Progress and Message are the content of a heartbeat.
	Progress *int
	Message  string
	// Missing: the caller is the attempt's worker, but no heartbeat item was open.
	Missing bool
}

func (f WorkerContacted) apply(d *draft) error {
	if err := f.refused(d); err != nil {
		return err
	}
	if f.HandlesSigterm && !d.Attempt.HandlesSigterm {
		d.Attempt.HandlesSigterm, d.changed = true, true
	}
	if f.SendsOutput {
		d.sendsOutput()
	}
	first := d.Attempt.WorkerID == ""
	if !first && !f.Missing {
		return nil
	}
	d.contacted(d.now)
	d.Attempt.WorkerID, d.Attempt.Replica, d.changed = f.WorkerID, f.Replica, true
	if first {
		d.emit(Event{Type: EventWorkerContacted, Message: f.WorkerID})
	}
	switch {
	case d.State == ContainerCreating:
		d.enterRunning()
	case d.Attempt.HeartbeatExempt:
		d.Attempt.HeartbeatExempt = false
		if d.EndRequest() == nil {
			d.enterTokenState(StepRunning) // re-enter the state with the heartbeat limit
		}
	}
	d.openHeartbeat(f)
	return nil
}

// openHeartbeat creates the heartbeat item of the worker.
func (d *draft) openHeartbeat(f WorkerContacted) {
	heartbeat := Heartbeat{
		Attempt: f.Attempt, WorkerID: f.WorkerID, At: d.now, Progress: f.Progress, Message: f.Message,
	}
	if d.Attempt.HeartbeatsSwept {
		heartbeat.Timeout = d.Policy.HeartbeatTimeout
	} else {
		heartbeat.ForwardEvery = forwardEvery(d.Policy)
		if d.Wait.Step == StepRunning && d.Wait.Token != "" {
			heartbeat.Token, heartbeat.Generation, heartbeat.TokenAt = d.Wait.Token, d.Wait.Generation, d.now
		}
	}
	if end := d.EndRequest(); end != nil {
		heartbeat.Cancel = &end.Reason
	}
	d.heartbeat.Open = &heartbeat
}

// refused returns the fault of a refused call; nil if the call is accepted. The cases are in
// the order of the worker contract.
func (f WorkerContacted) refused(d *draft) error {
	if err := d.current(f.Attempt); err != nil {
		return err
	}
	if err := d.sameWorker(f.WorkerID); err != nil {
		if f.Started {
			return err
		}
		return fault.New(fault.TaskExpired, "another worker has this attempt")
	}
	switch {
	case !d.isCurrent(f.Attempt) && (d.declaredDead() || !f.Started):
		return d.expired()
	case !d.isCurrent(f.Attempt):
		return fault.New(fault.TaskAlreadyTerminal, "this attempt has ended: %s", d.why())
	case d.Cancel != nil && f.Started:
		return fault.New(fault.TaskAlreadyTerminal, "the run is being cancelled; do not start")
	case d.Evicted() && f.Started:
		return fault.New(fault.TaskAlreadyTerminal, "%s; do not start", d.Attempt.Eviction.Reason)
	}
	return nil
}

// current returns AttemptMismatch if the attempt is not the current one.
func (r Run) current(attempt int) error {
	if attempt == r.Attempt.Number {
		return nil
	}
	return fault.New(fault.AttemptMismatch,
		"the call is of attempt %d, want the current attempt %d", attempt, r.Attempt.Number)
}

// sameWorker returns WorkerMismatch if another worker has the attempt.
func (r Run) sameWorker(id string) error {
	if r.Attempt.WorkerID == "" || r.Attempt.WorkerID == id {
		return nil
	}
	return fault.New(fault.WorkerMismatch, "worker %s has this attempt", r.Attempt.WorkerID)
}

// declaredDead reports whether the attempt ended without a report of its worker, except by a
// cancellation within the grace period. Version 0.0 recorded the outcome CANCELLED for workers
// that were killed after the grace.
func (r Run) declaredDead() bool {
	if r.Attempt.Report != nil || r.IsCurrent(r.Attempt.Number) {
		return false
	}
	return r.Attempt.Outcome != OutcomeCancelled || (r.Fault != nil && r.Fault.Code == fault.CancelTimeout)
}

func (r Run) expired() error {
	if r.declaredDead() {
		return fault.New(fault.TaskExpired, "this attempt was declared dead: %s", r.why())
	}
	return fault.New(fault.TaskExpired, "this attempt has ended: %s", r.why())
}

func (r Run) why() string {
	switch {
	case r.Queued():
		return "its start was throttled and will be repeated"
	case r.Fault == nil:
		return "its worker has reported"
	}
	return r.Fault.Message
}

// OutputSent: the worker of an attempt sends output. It is refused with TaskExpired if the
// attempt has ended, and with AttemptMismatch if it has not begun.
type OutputSent struct{ Attempt int }

func (f OutputSent) apply(d *draft) error {
	switch {
	case f.Attempt < d.Attempt.Number:
		return fault.New(fault.TaskExpired, "attempt %d has ended, the current attempt is %d", f.Attempt, d.Attempt.Number)
	case f.Attempt > d.Attempt.Number:
		return d.current(f.Attempt)
	case !d.isCurrent(f.Attempt):
		return d.expired()
	}
	d.sendsOutput()
	return nil
}

// sendsOutput records that output of the attempt may be stored while it runs, if the run's logs
// are stored.
func (d *draft) sendsOutput() {
	if !d.Attempt.SendsOutput && d.KeepsLogs() {
		d.Attempt.SendsOutput, d.changed = true, true
	}
}

// KeepsLogs reports whether the logs of the run are stored.
func (r Run) KeepsLogs() bool { return r.Work.Program == nil || !r.Work.Program.DropLogs }

// CancelDelivered: a response delivers the cancel request to the worker. The grace period
// starts now if it has not started.
type CancelDelivered struct{ Attempt int }

func (f CancelDelivered) apply(d *draft) error {
	if d.State != Running || d.EndRequest() == nil || f.Attempt != d.Attempt.Number || !d.Attempt.CancelDeliveredAt.IsZero() {
		return nil
	}
	before := d.cancelBy(d.now)
	d.Attempt.CancelDeliveredAt, d.changed = d.now, true
	if d.Attempt.GraceUntil.IsZero() {
		d.Attempt.GraceUntil = d.now.Add(d.Policy.CancelGrace)
	}
	if d.cancelBy(d.now).Before(before) {
		d.enterTokenState(StepCancelling) // re-enter the state with the earlier time
	}
	return nil
}

// markSigterm records SIGTERM as sent if it is due, and starts the grace period.
func (d *draft) markSigterm() {
	if !d.Attempt.SigtermAt.IsZero() || d.now.Before(d.SigtermBy()) {
		return
	}
	d.Attempt.SigtermAt = d.now
	if d.Attempt.GraceUntil.IsZero() {
		d.Attempt.GraceUntil = d.now.Add(d.Policy.CancelGrace)
	}
}

// SigtermBy returns when SIGTERM is due after a cancel request. It is due at once if the worker
// handles SIGTERM or never called. It is due after one heartbeat interval while the request is
// not delivered. Once it is delivered, it is due after five sixths of the grace period, but at
// least two seconds before its end.
func (r Run) SigtermBy() time.Time {
	switch {
	case r.Attempt.WorkerID == "" || r.Attempt.HandlesSigterm:
		return r.endRequestedAt()
	case r.Attempt.CancelDeliveredAt.IsZero():
		return r.endRequestedAt().Add(r.Policy.HeartbeatInterval)
	}
	grace := r.Policy.CancelGrace
	return r.Attempt.CancelDeliveredAt.Add(max(min(grace*5/6, grace-2*time.Second), 0))
}

// cancelBy returns when the next step of a cancellation is due: SIGTERM, or the end of the
// grace period once SIGTERM was or is about to be sent. It is at most the time limit of the
// attempt, which the grace does not extend.
func (r Run) cancelBy(now time.Time) time.Time {
	by := r.Attempt.GraceUntil
	if sigterm := r.SigtermBy(); r.Attempt.SigtermAt.IsZero() && sigterm.After(now) {
		by = sigterm
	} else if by.IsZero() {
		by = now.Add(r.Policy.CancelGrace)
	}
	if limit := r.RunBy(); limit.Before(by) {
		return limit
	}
	return by
}
