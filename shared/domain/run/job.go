package run

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Trigger says what created a run of a job; empty for an export.
type Trigger string

// The triggers.
const (
	TriggerRequest  Trigger = "request"     // a request without a stored job
	TriggerManual   Trigger = "manual"      // a request for a run of a job
	TriggerSchedule Trigger = "schedule"    // the job's schedule
	TriggerCatchUp  Trigger = "catch_up"    // the job's schedule, for a missed time
	TriggerEvent    Trigger = "event"       // an item of the job's sensor
	TriggerBackfill Trigger = "backfill"    // a request for a past time of the job's schedule
	TriggerJob      Trigger = "trigger_job" // an action of another job's run
	TriggerAfter    Trigger = "after"       // the end of runs of other jobs
	TriggerFan      Trigger = "fan_out"     // a run with an item for each child
	TriggerPool     Trigger = "pool"        // a pool of an engine; the run is a replica of it
)

// Triggers returns all triggers.
func Triggers() []Trigger {
	return []Trigger{TriggerRequest, TriggerManual, TriggerSchedule, TriggerCatchUp, TriggerBackfill, TriggerEvent, TriggerJob, TriggerAfter, TriggerFan, TriggerPool}
}

// Result is how a run of a job ended, as stored with the job.
type Result struct {
	RunID   string    `json:"runId"`
	Success bool      `json:"success"`
	EndedAt time.Time `json:"endedAt"`
	// State is the final state of the run; empty in results of an earlier release.
	State State `json:"state,omitempty"`
}

// Result returns the result to store with the job. ok is false for a run without a stored job,
// one that has not ended, and one that is IgnoredAsPrevious.
func (r Run) Result() (result Result, ok bool) {
	if r.JobID == "" || !r.State.Terminal() || r.IgnoredAsPrevious() {
		return Result{}, false
	}
	return Result{RunID: r.ID, Success: r.State == Completed, EndedAt: r.EndedAt, State: r.State}, true
}

// Unsuccessful describes a result that is not a success.
func (r Result) Unsuccessful() string {
	ended := "failed"
	switch r.State {
	case Cancelled:
		ended = "was cancelled"
	case Orphaned:
		ended = "was orphaned"
	}
	return fmt.Sprintf("run %s %s at %s", r.RunID, ended, r.EndedAt.Format(time.RFC3339))
}

// PreviousViolation returns the violation of requirePreviousSuccess by the previous run of the
// job. ok is false if that run succeeded.
func PreviousViolation(previous Run, now time.Time) (v spec.ConstraintViolation, ok bool) {
	v = spec.ConstraintViolation{Constraint: spec.RequirePreviousSuccess, At: now}
	switch {
	case !previous.State.Terminal():
		v.Message = fmt.Sprintf("previous_running: run %s is under way, in %s", previous.ID, previous.State)
		v.Awaits = previous.JobSlot.State != ""
	case previous.State == Completed:
		return v, false
	default:
		result, _ := previous.Result()
		v.Message = result.Unsuccessful()
	}
	return v, true
}

// FiringID returns the id of the job's run for a firing time.
func FiringID(jobID string, at time.Time) string {
	return jobID + ":" + at.UTC().Format(keyFormat)
}

// ItemID returns the id of the job's run for an item. key is sensor.Event.Key.
func ItemID(jobID, key string) string { return jobID + ":" + key }

// TriggersExec returns the run with Actions.Exec set to may; see MayTriggerExec.
func (r Run) TriggersExec(may bool) Run {
	if r.Actions != nil && r.Actions.Exec != may {
		actions := *r.Actions
		actions.Exec = may
		r.Actions = &actions
	}
	return r
}

// MayTriggerExec reports whether trigger_job of the run may run programs of the host.
func (r Run) MayTriggerExec() bool { return r.Exec && r.Actions != nil && r.Actions.Exec }
