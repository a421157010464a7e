package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Step is a state of the state machine (statemachines/run.asl.json): the position of an
// execution. State is the state of the run.
type Step string

// The steps, in the order of a run's life. statemachines/README.md describes
// each.
const (
	StepPending           Step = "Pending"
	StepPreRun            Step = "PreRun"
	StepQueued            Step = "Queued"
	StepConditionRunning  Step = "ConditionRunning"
	StepActionRunning     Step = "ActionRunning"
	StepActionWaiting     Step = "ActionWaiting"
	StepContainerCreating Step = "ContainerCreating"
	StepRunning           Step = "Running"
	StepCancelling        Step = "Cancelling"
	StepReconciling       Step = "Reconciling"
	StepBackingOff        Step = "BackingOff"
	StepTerminating       Step = "Terminating"
	StepRetrying          Step = "Retrying"
	StepCompleted         Step = "Completed"
	StepFailed            Step = "Failed"
	StepCancelled         Step = "Cancelled"
)

// Steps lists all steps.
func Steps() []Step {
	return []Step{
		StepPending, StepPreRun, StepQueued, StepConditionRunning, StepActionRunning, StepActionWaiting,
		StepContainerCreating, StepRunning, StepCancelling, StepReconciling, StepBackingOff, StepTerminating,
		StepRetrying, StepCompleted, StepFailed, StepCancelled,
	}
}

// Route is the document that an execution carries: ids and routing fields, never data. Times
// are whole seconds, rounded up, at least 1.
type Route struct {
	Ref
	Next Step `json:"next"`
	// Generation is the entry number of the token state that Next is or leads to.
	Generation int `json:"generation"`
	// HeartbeatSeconds is always below TimeoutSeconds, as Step Functions
	// requires.
	HeartbeatSeconds int `json:"heartbeatSeconds"`
	TimeoutSeconds   int `json:"timeoutSeconds"`
	// Seconds is the duration of the Wait in BackingOff or Retrying.
	Seconds int `json:"seconds"`
	// Until is when PreRun ends; zero in other states, which do not read it.
	Until time.Time `json:"until,omitzero"`
}

// RouteOf returns the next step of the execution. It depends only on the record and the time.
func RouteOf(r Run, now time.Time) Route {
	route := Route{Ref: r.Ref(), Generation: r.Wait.Generation, HeartbeatSeconds: 1, TimeoutSeconds: 2, Seconds: 1}
	switch r.State {
	case PreRun:
		route.Next, route.Until = StepPreRun, r.ScheduledAt
	case Pending:
		route.Next = StepPending
		switch {
		case r.Slot.State == platform.SlotQueued, r.AwaitsKey():
			route.Next = StepQueued
			route.limits(r.QueueBy().Sub(now), 0)
		case r.Slot.State == platform.SlotHeld:
			route.Next = StepConditionRunning
		}
	case ConditionPending, ConditionRunning:
		route.Next = StepConditionRunning
	case ActionPending, ActionRunning:
		route.Next = StepActionRunning
		switch {
		case r.Queued():
			route.Next = StepQueued
			route.limits(r.QueueBy().Sub(now), 0)
		case r.Acting == nil || r.Acting.Due:
		case r.Acting.Waits:
			route.Next = StepActionWaiting
			route.limits(r.actionUntil().Sub(now), 0)
		case r.Acting.Done:
			route.Next = StepPending
		}
	case ContainerCreating:
		if r.Queued() {
			route.Next = StepQueued
			route.limits(r.queueWake().Sub(now), 0)
			break
		}
		route.Next = StepContainerCreating
		if r.Attempt.BackoffUntil.After(now) {
			route.Next = StepBackingOff
			route.Seconds = wholeSeconds(r.Attempt.BackoffUntil.Sub(now))
		}
		route.limits(r.untilDeadline(r.Attempt.StartBy).Sub(now), 0)
	case Running:
		route.Next = StepRunning
		until := r.RunBy()
		if by := r.expectedBy(); !by.IsZero() && by.Before(until) {
			until = by
		}
		if r.Fan != nil {
			route.limits(r.fanRoute(until, now), 0)
			break
		}
		route.limits(until.Sub(now), r.heartbeatLeft(now))
		if r.EndRequest() != nil {
			route.Next = StepCancelling
			route.limits(r.cancelBy(now).Sub(now), 0)
		}
	case Terminating:
		route.Next = StepTerminating
	case Retrying:
		route.Next, route.Seconds = StepRetrying, wholeSeconds(r.RetryAt.Sub(now))
	case Completed:
		route.Next = StepCompleted
	case Cancelled:
		route.Next = StepCancelled
	case Failed, Orphaned:
		route.Next = StepFailed
	}
	return route
}

// limits sets both limits from the remaining time. A heartbeat of 0 means no limit, which is
// written as the remaining time.
func (t *Route) limits(remains, heartbeat time.Duration) {
	t.HeartbeatSeconds = wholeSeconds(remains)
	t.TimeoutSeconds = t.HeartbeatSeconds + 1
	if heartbeat > 0 {
		t.HeartbeatSeconds = min(t.HeartbeatSeconds, wholeSeconds(heartbeat))
	}
}

func wholeSeconds(d time.Duration) int {
	return max(int((d+time.Second-1)/time.Second), 1)
}

// QueueBy returns when the queue timeout expires for a run that is queued for its key or its
// pool. The timeout includes the wait for the key. It is at most the deadline of the run, or of
// an inference task.
func (r Run) QueueBy() time.Time {
	since := r.Slot.Since
	if r.AwaitsKey() {
		since = r.KeySlot.Since
	}
	by := since.Add(r.Policy.QueueTimeout)
	if r.Work.Inference != nil && r.AnswerBy().Before(by) { // a retry is queued again later
		by = r.AnswerBy()
	}
	return r.untilDeadline(by)
}

// RunBy returns the end of the time limit of a started attempt, at most the deadline of the run.
func (r Run) RunBy() time.Time {
	if r.FansOut() {
		return r.untilDeadline(r.StartedAt.Add(fanLimit))
	}
	return r.untilDeadline(r.Attempt.StartedAt.Add(r.Policy.TimeLimit))
}

// Deadline returns the latest time at which the attempt can end by itself: its start limit plus
// its time limit, but at most the deadline of the run. It moves with the start limit, so that the
// time in which the platform refuses machines does not reduce that of the worker.
func (r Run) Deadline() time.Time {
	startBy := r.Attempt.IntentAt.Add(r.Policy.StartTimeout)
	if r.Attempt.StartBy.After(startBy) {
		startBy = r.Attempt.StartBy
	}
	return r.untilDeadline(startBy.Add(r.Policy.TimeLimit))
}

// LeadsTo reports whether the execution reaches route if a token of step s is completed
// successfully. Otherwise the token is completed with a failure, which leads to Reconciling.
func (s Step) LeadsTo(route Route) bool {
	switch s {
	case StepActionWaiting:
		return true
	case StepQueued:
		return route.Next == StepContainerCreating
	case StepContainerCreating:
		return route.Next == StepRunning || route.Next == StepTerminating
	case StepRunning, StepCancelling:
		return route.Next == StepTerminating
	}
	return false
}
