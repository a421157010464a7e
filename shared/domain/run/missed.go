package run

import (
	"fmt"
	"maps"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Missed describes consecutive firings of a job that were skipped together. The first one is
// the run's ScheduledAt.
type Missed struct {
	Reason SkipReason `json:"reason"`
	// Count is the number of firings, at least 1.
	Count int `json:"count"`
	// Until is the time of the last firing.
	Until time.Time `json:"until"`
	// By is the run of another job for SkipUpstreamFailed and SkipUpstreamCancelled.
	By JobRun `json:"by,omitzero"`
}

// SkipReason is why a firing was skipped.
type SkipReason string

// The reasons.
const (
	// SkipMissed: the firing was missed, and its job starts at most the newest missed one.
	SkipMissed SkipReason = "missed"
	// SkipDeadline: the firing was missed longer ago than its job's starting deadline.
	SkipDeadline SkipReason = "starting_deadline"
	// SkipWindow: the firing was missed longer ago than the catchUpWindow of its job.
	SkipWindow SkipReason = "catch_up_window"
	// SkipLimit: more firings were missed than the job catches up.
	SkipLimit SkipReason = "catch_up_limit"
	// SkipQueueFull: the queue of the job's pool was full.
	SkipQueueFull SkipReason = "queue_full"
	// SkipNoPool: the job's pool does not exist.
	SkipNoPool SkipReason = "unknown_pool"
	// SkipNoExec: the job is of a program of the host, and the client that stored it did not
	// have the scope exec.
	SkipNoExec SkipReason = "missing_scope"
	// SkipUpstreamFailed: a job that this one comes after did not end as needed.
	SkipUpstreamFailed SkipReason = "upstream_failed"
	// SkipUpstreamCancelled: the graph was cancelled.
	SkipUpstreamCancelled SkipReason = "upstream_cancelled"
	// SkipInputs: the newest definition of a job that comes after others has no value for an input,
	// or the item of a child is too long for the templates of the job.
	SkipInputs SkipReason = "invalid_inputs"
	// SkipPaused: the job comes after others, and was paused.
	SkipPaused SkipReason = "paused"
)

// String describes the firings.
func (m Missed) String() string {
	switch m.Reason {
	case SkipUpstreamFailed:
		return fmt.Sprintf("skipped: run %s of job %s did not end as needed", m.By.RunID, m.By.JobID)
	case SkipUpstreamCancelled:
		return fmt.Sprintf("skipped: what comes after run %s of job %s was cancelled", m.By.RunID, m.By.JobID)
	case SkipPaused:
		return "skipped: the job is paused"
	}
	firings := "a firing was"
	if m.Count > 1 {
		firings = fmt.Sprintf("%d firings until %s were", m.Count, m.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s skipped: %s", firings, map[SkipReason]string{
		SkipMissed:   "missed, since a later one was due too or it was too late",
		SkipDeadline: "missed longer ago than the job's startingDeadline",
		SkipWindow:   "missed longer ago than the job's catchUpWindow",
		SkipLimit:    "missed more often than a job catches up",

		SkipQueueFull: "the queue of the job's pool is full",
		SkipNoPool:    "the job's pool does not exist",
		SkipNoExec:    "the job is of a program of the host and was stored without the scope exec; apply it again with a token that has it",
		SkipInputs:    "an input or the item has no valid value for the job",
	}[m.Reason])
}

// NewSkipped returns the record of skipped firings with its event: a run that is Completed
// without an attempt or an execution. The job's onSkip action follows all these firings once.
// The caller sets identity, work, policy, actions and Missed.
func NewSkipped(r Run, now time.Time) Decision {
	now = now.UTC()
	r.CreatedAt, r.EnteredAt, r.EndedAt = now, now, now
	r.ExpiresAt = now.Add(r.Policy.RecordRetention)
	r.State, r.Version, r.EventCount, r.Skipped = Completed, 0, 0, true
	d := &draft{Run: r, now: now, actor: r.creator()}
	d.emit(Event{Type: EventSkipped, Message: r.Missed.String()})
	d.follow()
	d.endActions()
	return d.created()
}

// created returns the decision that creates a run which has already ended and has no execution.
// Its end actions are pending.
func (d *draft) created() Decision {
	d.Execution.Pending = d.effects
	d.Execution.ActBy = actBy(d.Run, d.now)
	return Decision{Run: d.Run, Events: d.events, Effects: d.effects, Changed: true}
}

// turnLimit is the maximum wait of a run for its turn.
const turnLimit = 30 * 24 * time.Hour

// InTurn returns a new run that waits for a slot of its job while earlier runs hold the slots.
// This replaces the action on maxConcurrentRuns if it would skip the run, cancel the others, or
// change the order.
func (r Run) InTurn() Run {
	if r.Constraints == nil || r.Constraints.MaxConcurrentRuns == 0 {
		return r
	}
	r.Violations = []spec.ConstraintViolation{{Constraint: spec.MaxConcurrentRuns}}
	action, _ := r.ViolationAction()
	r.Violations = nil
	switch action.Type {
	case spec.ActionWait, spec.ActionWebhook, spec.ActionTriggerJob:
		return r
	case spec.ActionSkip, spec.ActionKillOld, spec.ActionRetryLater:
	}
	var actions spec.Actions
	if r.Actions != nil {
		actions = *r.Actions
	}
	if actions.Each = maps.Clone(actions.Each); actions.Each == nil {
		actions.Each = map[spec.Constraint]spec.Action{}
	}
	actions.Each[spec.MaxConcurrentRuns] = spec.Action{Type: spec.ActionWait, Limit: turnLimit}
	r.Actions = &actions
	return r
}
