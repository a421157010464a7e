package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Heard: a worker called, with started or with a heartbeat that found no open
// item. The first worker of an attempt that calls is the one that is heard; its
// call implies the start, and from then on it is held to its heartbeats. The
// faults that refuse a call are those of the worker contract.
type WorkerContacted struct {
	Attempt  int
	WorkerID string
	// Started tells the two calls apart, which are refused in different words.
	Started bool
	// HandlesSigterm: the worker said that it ends gracefully on SIGTERM.
	HandlesSigterm bool
	// Progress and Message are a heartbeat's.
	Progress *int
	Message  string
	// Missing: the worker is the one that is heard, and yet no item was open.
	Missing bool
}

func (f WorkerContacted) apply(d *draft) error {
	if err := f.refused(d); err != nil {
		return err
	}
	if f.HandlesSigterm && !d.Attempt.HandlesSigterm {
		d.Attempt.HandlesSigterm, d.changed = true, true
	}
	first := d.Attempt.WorkerID == ""
	if !first && !f.Missing {
		return nil
	}
	d.Attempt.WorkerID, d.Attempt.LastContactAt, d.changed = f.WorkerID, d.now, true
	if first {
		d.emit(Event{Type: EventWorkerContacted, Message: f.WorkerID})
	}
	switch {
	case d.State == ContainerCreating:
		d.begin()
	case d.Attempt.HeartbeatExempt:
		d.Attempt.HeartbeatExempt = false
		if d.Cancel == nil {
			d.await(StepRunning) // again, with the limit
		}
	}
	d.openHeartbeat(f)
	return nil
}

// openBeat makes the item that the worker's heartbeats go to.
func (d *draft) openHeartbeat(f WorkerContacted) {
	heartbeat := Heartbeat{
		Attempt: f.Attempt, WorkerID: f.WorkerID, At: d.now, Progress: f.Progress, Message: f.Message,
	}
	if d.Wait.Step == StepRunning && d.Wait.Token != "" {
		heartbeat.Token, heartbeat.Generation = d.Wait.Token, d.Wait.Generation
	}
	if d.Cancel != nil {
		heartbeat.Cancel = &d.Cancel.Reason
	}
	d.heartbeat.Open = &heartbeat
}

// refused is the answer to a call that is not taken, in the order of the
// worker contract's cases.
func (f WorkerContacted) refused(d *draft) error {
	if err := d.current(f.Attempt); err != nil {
		return err
	}
	if err := d.sameWorker(f.WorkerID); err != nil {
		if f.Started {
			return err
		}
		return fault.New(fault.TaskExpired, "another worker than this one is heard")
	}
	switch {
	case !d.isCurrent(f.Attempt) && (d.declaredDead() || !f.Started):
		return d.expired()
	case !d.isCurrent(f.Attempt):
		return fault.New(fault.TaskAlreadyTerminal, "this attempt has ended: %s", d.why())
	case d.Cancel != nil && f.Started:
		return fault.New(fault.TaskAlreadyTerminal, "the run is being cancelled; nothing is to be begun")
	}
	return nil
}

// current refuses the call of another attempt than the current one.
func (r Run) current(attempt int) error {
	if attempt == r.Attempt.Number {
		return nil
	}
	return fault.New(fault.AttemptMismatch,
		"this is attempt %d's call, and attempt %d is the current one", attempt, r.Attempt.Number)
}

// sameWorker refuses the call of another worker than the one that is heard.
func (r Run) sameWorker(id string) error {
	if r.Attempt.WorkerID == "" || r.Attempt.WorkerID == id {
		return nil
	}
	return fault.New(fault.WorkerMismatch, "another worker of this attempt, %s, is the one that is heard", r.Attempt.WorkerID)
}

// declaredDead says whether the attempt ended without its worker's word, and not
// because it was cancelled in time.
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
	if r.Fault == nil {
		return "its worker has reported"
	}
	return r.Fault.Message
}

// CancelTold: an answer is about to tell the worker of the cancel. Its grace
// counts from then on, if it has not begun.
type CancelDelivered struct{ Attempt int }

func (f CancelDelivered) apply(d *draft) error {
	if d.State != Running || d.Cancel == nil || f.Attempt != d.Attempt.Number || !d.Attempt.CancelDeliveredAt.IsZero() {
		return nil
	}
	before := d.cancelBy(d.now)
	d.Attempt.CancelDeliveredAt, d.changed = d.now, true
	if d.Attempt.GraceUntil.IsZero() {
		d.Attempt.GraceUntil = d.now.Add(d.Policy.CancelGrace)
	}
	if d.cancelBy(d.now).Before(before) {
		d.await(StepCancelling) // again, with the new time
	}
	return nil
}

// term notes that SIGTERM is about to be sent, when it is due.
func (d *draft) markSigterm() {
	if !d.Attempt.SigtermAt.IsZero() || d.now.Before(d.SigtermBy()) {
		return
	}
	d.Attempt.SigtermAt = d.now
	if d.Attempt.GraceUntil.IsZero() {
		d.Attempt.GraceUntil = d.now.Add(d.Policy.CancelGrace)
	}
}

// TermBy is when a worker that is to be cancelled is sent SIGTERM. At once, where
// it handles that, or was never heard. To one that makes no call, one heartbeat
// interval after the wish; to one that was told, when five sixths of its grace
// are over, but two seconds before the end of it.
func (r Run) SigtermBy() time.Time {
	switch {
	case r.Attempt.WorkerID == "" || r.Attempt.HandlesSigterm:
		return r.Cancel.At
	case r.Attempt.CancelDeliveredAt.IsZero():
		return r.Cancel.At.Add(r.Policy.HeartbeatInterval)
	}
	grace := r.Policy.CancelGrace
	return r.Attempt.CancelDeliveredAt.Add(max(min(grace*5/6, grace-2*time.Second), 0))
}

// cancelBy is when a cancel's next turn is due: SIGTERM, or the end of the
// grace, which is all that is left when SIGTERM is about to be sent.
func (r Run) cancelBy(now time.Time) time.Time {
	if by := r.SigtermBy(); r.Attempt.SigtermAt.IsZero() && by.After(now) {
		return by
	}
	if r.Attempt.GraceUntil.IsZero() {
		return now.Add(r.Policy.CancelGrace)
	}
	return r.Attempt.GraceUntil
}
