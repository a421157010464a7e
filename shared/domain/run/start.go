package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// TokenStored: the execution entered a token state with this token. A token of an older
// generation, or of a step that the record has left, is not stored; the caller completes it at
// once. A token of Cancelling that arrives when SIGTERM is due marks SIGTERM as sent and starts
// the grace period. The cancel request itself does not, because the execution may see it late.
type TokenStored struct {
	Step       Step
	Generation int
	Token      string
	// Repeated: the record already had the token when the call began, so an earlier call of the
	// same step may have created a machine.
	Repeated bool
	// Swept, in ContainerCreating: heartbeats of the attempt are not forwarded.
	Swept bool
	// Placement is the placement of the run's pool, in ContainerCreating. It is committed
	// before the first create call. It is replaced only while no call can have created a
	// machine, so that every call for the same machine has the same placement.
	Placement platform.Placement
}

func (f TokenStored) acted(r Run) bool { return f.Generation == r.Wait.Generation }

func (f TokenStored) apply(d *draft) error {
	if f.Step != d.Wait.Step || f.Generation != d.Wait.Generation {
		return nil
	}
	if f.Token == d.Wait.Token {
		if f.Repeated && !d.Attempt.Machine.Known() && !d.Attempt.CreateBy.IsZero() && !d.Attempt.MaybeCreated {
			d.Attempt.MaybeCreated, d.changed = true, true
		}
		return nil
	}
	d.Wait.Token = f.Token
	d.changed = true
	switch {
	case f.Step == StepContainerCreating:
		d.Attempt.HeartbeatsSwept = f.Swept
	case f.Step == StepRunning && d.Attempt.WorkerID != "" && !d.Attempt.HeartbeatsSwept:
		d.heartbeat.Token, d.heartbeat.Generation, d.heartbeat.TokenAt = &f.Token, f.Generation, d.now
	}
	switch f.Step {
	case StepCancelling:
		d.markSigterm()
	case StepContainerCreating:
		if !d.Attempt.Machine.Known() {
			d.Attempt.MaybeCreated = d.Attempt.MaybeCreated || !d.Attempt.CreateBy.IsZero()
			if !d.Attempt.MaybeCreated {
				d.setPlacement(f.Placement)
			}
			d.Attempt.CreateBy = d.now.Add(createLimit)
		}
	}
	return nil
}

// setPlacement sets the placement of the attempt.
func (d *draft) setPlacement(where platform.Placement) {
	d.Attempt.Placement = nil
	if !where.Equal(platform.Placement{}) {
		d.Attempt.Placement = &where
	}
}

// Place returns the placement of the attempt's machine; zero for that of the deployment.
func (a Attempt) Place() platform.Placement {
	if a.Placement == nil {
		return platform.Placement{}
	}
	return *a.Placement
}

// createLimit is how long a create call may take after the entry into ContainerCreating. It is
// longer than the time limit of the function that sends the call.
const createLimit = 90 * time.Second

// Creating reports whether a create call of the attempt may be in flight. A machine may then
// appear although the platform does not list it.
func (r Run) Creating(now time.Time) bool {
	return !r.Attempt.Machine.Known() && now.Before(r.Attempt.CreateBy)
}

// MachineCreated: the runner has created or adopted the machine of an attempt. It changes
// nothing once the attempt is settled; the caller then destroys the machine.
type MachineCreated struct {
	Attempt int
	Machine platform.Machine
	// Running: the machine was observed running.
	Running bool
}

func (f MachineCreated) apply(d *draft) error {
	if f.Attempt != d.Attempt.Number || !d.State.HasMachine() || d.Attempt.Machine.Known() || d.Queued() {
		return nil
	}
	d.Attempt.Machine = f.Machine
	if d.Attempt.Machine.Pool = d.Slot.Pool; d.WarmForReuse().ID == "" {
		d.Attempt.Machine.Version = ""
	}
	d.Attempt.BackoffUntil, d.Attempt.Throttles, d.Attempt.CreateBy = time.Time{}, 0, time.Time{}
	d.emit(Event{Type: EventMachineCreated, Message: f.Machine.ID})
	if f.Running && d.State == ContainerCreating {
		d.enterRunning()
	}
	return nil
}

// IsCurrent reports whether the attempt is the current one, has not ended, and may have a
// machine.
func (r Run) IsCurrent(attempt int) bool {
	return attempt == r.Attempt.Number && (r.State == ContainerCreating || r.State == Running) && !r.Queued()
}

func (d *draft) isCurrent(attempt int) bool { return d.IsCurrent(attempt) }

// StartRefused: the runner did not create the machine. A fault that is the reason of a fallback
// ends the attempt and uses up nothing; see Fallback. Otherwise the code decides:
//
//   - Throttled: the run returns its slot and queues for the next permitted start, from which
//     its start limit counts. It uses up nothing.
//   - Unavailable: a machine may exist. The run keeps its slot and tries again, also after a
//     later Throttled; the start limit counts from the first try. It uses up nothing.
//   - Capacity and Image: the run uses a further start. If the fault is not retryable, the
//     attempt ends and is not retried.
//   - Others: the attempt ends and is not retried.
type StartRefused struct {
	Attempt int
	Fault   *fault.Fault
	// Fallbacks are those of the run's pools, in order.
	Fallbacks []platform.Fallback
	// Rand is a random number, 0 <= Rand < 1, for the jitter.
	Rand float64
}

func (f StartRefused) apply(d *draft) error {
	if f.Attempt != d.Attempt.Number || !d.State.HasMachine() {
		return nil
	}
	if !d.Attempt.CreateBy.IsZero() {
		d.Attempt.CreateBy, d.changed = time.Time{}, true
	}
	if d.State != ContainerCreating || d.Queued() {
		return nil
	}
	d.recordRefusal(f.Fault)
	if d.fallBack(f.Fallbacks, f.Fault) {
		return nil
	}
	switch code := f.Fault.Code; {
	case code == fault.Throttled, code == fault.Unavailable:
		d.Attempt.Throttles++
		d.Attempt.MaybeCreated = d.Attempt.MaybeCreated || f.Fault.Code == fault.Unavailable
		if !d.Attempt.MaybeCreated {
			d.requeue()
			break
		}
		d.Attempt.BackoffUntil = d.now.Add(d.startDelay(d.Attempt.Throttles, f.Rand))
		if d.Attempt.StartBy.Before(d.Attempt.BackoffUntil) {
			d.Attempt.BackoffUntil = d.Attempt.StartBy
		}
		d.enterTokenState(StepContainerCreating)
	case (code == fault.Capacity || code == fault.Image) && f.Fault.Retryable:
		d.Spent.Starts++
		if d.Spent.Starts > d.Policy.Retry.MaxFurtherStarts {
			d.endAttempt(OutcomeFailed, f.Fault.Message, notRetryable(d.withDetour(f.Fault)))
			return nil
		}
		d.Attempt.BackoffUntil = d.now.Add(d.startDelay(d.Spent.Starts, f.Rand))
		d.Attempt.StartBy = d.Attempt.BackoffUntil.Add(d.Policy.StartTimeout)
		if !d.Attempt.MaybeCreated { // no machine exists: the next call needs a start token of its own
			d.Attempt.App, d.Attempt.StartAt = "", time.Time{}
		}
		d.enterTokenState(StepContainerCreating)
	default:
		d.endAttempt(OutcomeFailed, f.Fault.Message, notRetryable(d.withDetour(f.Fault)))
		return nil
	}
	d.emit(Event{Type: EventStartRefused, Message: f.Fault.Message, Fault: f.Fault})
	return nil
}

// StartFailed: the runner has created the machine of the attempt, and reports why its platform
// does not start it. The attempt ends, and its machine is destroyed before the next one. As
// after a refused start, the next attempt uses a fallback pool for that reason; without one it
// uses a further start.
type StartFailed struct {
	Attempt int
	Fault   *fault.Fault
	// Fallbacks are those of the run's pools, in order.
	Fallbacks []platform.Fallback
	// Gone: the machine is gone.
	Gone bool
}

func (f StartFailed) apply(d *draft) error {
	switch {
	case d.isCurrent(f.Attempt) && d.State == ContainerCreating && d.Cancel == nil:
		d.recordRefusal(f.Fault)
		if !d.fallBack(f.Fallbacks, f.Fault) {
			d.endAttempt(OutcomeFailed, f.Fault.Message, d.withDetour(f.Fault))
		}
	case f.Gone:
		return MachineGone{Attempt: f.Attempt}.apply(d)
	}
	return nil
}

// startDelay returns the backoff after n starts without a machine: that of the retry policy,
// but at least failureDelay, which grows to a minute.
func (d *draft) startDelay(n int, rand float64) time.Duration {
	return max(d.Policy.Retry.Delay(n, rand), failureDelay(n))
}

// StartDeferred: other runs wait for the platform's rate limit, so no create call was sent. The run
// releases its slot and waits in the queue.
type StartDeferred struct{ Attempt int }

func (f StartDeferred) apply(d *draft) error {
	if f.Attempt != d.Attempt.Number || d.State != ContainerCreating || d.Attempt.Machine.Known() || d.Queued() {
		return nil
	}
	d.Attempt.CreateBy = time.Time{}
	d.requeue()
	d.emit(Event{Type: EventQueued, Message: "waits for the platform to permit a start"})
	return nil
}

// StartPermitted: a start that did not queue took a token of the app's start limiter. It is
// committed with the limiter, before the create call.
type StartPermitted struct {
	Attempt int
	App     string
}

func (f StartPermitted) apply(d *draft) error {
	if f.Attempt != d.Attempt.Number || d.State != ContainerCreating || d.Attempt.Machine.Known() || d.Queued() {
		return nil
	}
	d.Attempt.App, d.Attempt.StartAt = f.App, d.now
	d.changed = true
	return nil
}

// notRetryable returns a copy of the fault that is not retryable.
func notRetryable(f *fault.Fault) *fault.Fault {
	last := *f
	last.Retryable = false
	return &last
}

// retryable returns a copy of the fault that is retryable.
func retryable(f *fault.Fault) *fault.Fault {
	again := *f
	again.Retryable = true
	return &again
}

// Shown is a fact that the runner observed about Machine. It changes nothing if the attempt has
// another machine by now, because it gave up a claimed one.
type Shown struct {
	Machine platform.Machine
	Fact    Fact
}

func (f Shown) apply(d *draft) error {
	if !d.uses(f.Machine) {
		return nil
	}
	return f.Fact.apply(d)
}

// uses reports whether m is the machine of the current attempt, or the one that it has claimed.
func (r Run) uses(m platform.Machine) bool {
	return r.Attempt.Machine.Key() == m.Key() || r.HasClaimed(m)
}

// MachineRunning: the runner has observed the attempt's machine running.
type MachineRunning struct{ Attempt int }

func (f MachineRunning) apply(d *draft) error {
	if d.State == ContainerCreating && f.Attempt == d.Attempt.Number && !d.Queued() {
		d.enterRunning()
	}
	return nil
}

// enterRunning enters Running. The time limit counts from now.
func (d *draft) enterRunning() {
	d.Attempt.StartedAt, d.Attempt.Waiting = d.now, ""
	if d.StartedAt.IsZero() {
		d.StartedAt = d.now
	}
	d.observeStart()
	d.enterTokenState(StepRunning)
	d.enter(Running, "", nil)
}

// MachineWaits: the runner reports that the platform may start the machine of the attempt
// later. It only records the message of the platform.
type MachineWaits struct {
	Attempt int
	// Message is the message of the platform; empty if it no longer sends one.
	Message string
}

func (f MachineWaits) apply(d *draft) error {
	if d.isCurrent(f.Attempt) && d.State == ContainerCreating && d.Attempt.Waiting != f.Message {
		d.Attempt.Waiting, d.changed = f.Message, true
	}
	return nil
}

// MachineGone: the runner has reported that the attempt's machine is gone.
type MachineGone struct {
	Attempt int
	// Exit describes how the program ended; nil if the runner does not know.
	Exit *Exit
	// GivenUp: the launch has destroyed the claimed warm machine.
	GivenUp bool
}

func (f MachineGone) apply(d *draft) error {
	if !d.isCurrent(f.Attempt) {
		return nil
	}
	if f.Exit == nil && !f.GivenUp && d.mayGiveUpClaim() {
		return nil
	}
	d.Attempt.Exit = f.Exit
	if d.State == ContainerCreating {
		if f.Exit == nil || f.Exit.Requested && d.claimGivenUp() {
			why := fault.New(fault.StartTimeout, "the machine was gone before it was seen running")
			d.recordRefusal(why)
			d.endAttempt(OutcomeFailed, "the machine was gone before it started", why)
			return nil
		}
		// A program that has ended has run. If the machine was stopped on request, its program
		// may never have started.
		if !f.Exit.Requested || f.Exit.OOM {
			d.enterRunning()
		}
	}
	switch {
	case d.Cancel != nil && f.Exit.killedAfter(d.Cancel.At):
		d.endKilled("the worker was killed after the cancel request, before it had ended; its grace is %s", d.Policy.CancelGrace)
		return nil
	case d.Cancel != nil:
		d.endAttempt(OutcomeCancelled, "the worker ended", d.cancelFault())
		return nil
	case d.evictedBy(f.Exit):
		outcome := OutcomeCancelled
		if f.Exit.killedAfter(d.Attempt.Eviction.At) {
			outcome = OutcomeFailed
		}
		d.endEvicted(outcome, "the worker ended after it was asked to")
		return nil
	}
	if endsByExit(d.Work, f.Exit) {
		d.endByExit(*f.Exit)
		return nil
	}
	why := d.lost(f.Exit)
	if f.Exit == nil || f.Exit.Requested && !f.Exit.OOM {
		d.recordRefusal(why)
	}
	d.endAttempt(OutcomeFailed, why.Message, why)
	return nil
}

// recordRefusal records a failure of the platform of the run's pool. A missing secret is a
// failure of the client and is not recorded.
func (d *draft) recordRefusal(f *fault.Fault) {
	if f != nil && f.Code != fault.SecretMissing {
		d.refusals = append(d.refusals, f)
	}
}
