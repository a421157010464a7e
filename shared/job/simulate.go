package job

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// Decision is what a simulated firing does.
type Decision string

// The decisions.
const (
	DecisionRun     Decision = "run"     // no constraint can prevent the run
	DecisionDepends Decision = "depends" // constraints can; the reasons say which, and what follows
)

// SimulatedFiring is a firing of Simulate.
type SimulatedFiring struct {
	// ScheduledAt is the nominal time, in the zone of the schedule.
	ScheduledAt time.Time
	Decision    Decision
	// Reasons has a sentence for each constraint that is evaluated.
	Reasons []string
}

// Simulate returns at most limit firings of a valid definition, after < t <= until,
// with what its constraints would do. It assumes that the schedule was committed at
// after.
func Simulate(d Definition, after, until time.Time, limit int) []SimulatedFiring {
	s, ok := d.schedule()
	if !ok {
		return nil
	}
	zone := s.zone
	if zone == nil {
		zone = time.UTC
	}
	var firings []SimulatedFiring
	at, ok := s.Next(after, after)
	for ok && !at.After(until) && len(firings) < limit {
		f := SimulatedFiring{ScheduledAt: at.In(zone), Decision: DecisionRun, Reasons: d.demands(at)}
		if len(f.Reasons) > 0 {
			f.Decision = DecisionDepends
		}
		firings = append(firings, f)
		at, ok = s.Next(at, after)
	}
	return firings
}

// demands describes what each constraint before the run would do at a firing.
func (d Definition) demands(at time.Time) []string {
	c := d.Constraints
	if c == nil {
		return nil
	}
	var reasons []string
	demand := func(name run.Constraint, format string, args ...any) {
		reasons = append(reasons, string(name)+": "+fmt.Sprintf(format, args...)+"; otherwise "+d.response(name))
	}
	if c.MaxConcurrentRuns != nil {
		demand(run.MaxConcurrentRuns, "starts while less than %d of the job's runs are under way", *c.MaxConcurrentRuns)
	}
	if given(c.RequirePreviousSuccess) {
		demand(run.RequirePreviousSuccess, "starts if the last run before %s succeeded", at.UTC().Format(time.RFC3339))
	}
	if c.CatchUpWindow != "" {
		demand(run.CatchUpWindow, "starts until %s", at.Add(c.CatchUpWindow.Value()).UTC().Format(time.RFC3339))
	}
	if c.PreRunHook != nil {
		demand(run.PreRunHook, "starts if %s allows it", c.PreRunHook.URL)
	}
	return reasons
}

// response describes the action for a violated constraint.
func (d Definition) response(name run.Constraint) string {
	action := Action{Type: run.ActionSkip}
	if d.Actions != nil {
		if one, ok := d.Actions.OnViolationOf[name]; ok {
			action = one
		} else if d.Actions.OnConstraintViolation != nil {
			action = *d.Actions.OnConstraintViolation
		}
	}
	done := action.run()
	switch action.Type {
	case run.ActionSkip:
		return "the firing is skipped"
	case run.ActionRetryLater:
		return fmt.Sprintf("it is checked every %s for at most %s", short(done.Delay), short(done.Limit))
	case run.ActionKillOld:
		return "older runs are cancelled first"
	case run.ActionWait:
		return fmt.Sprintf("it waits for at most %s", short(done.Limit))
	case run.ActionWebhook:
		return "a webhook is called"
	case run.ActionTriggerJob:
		return "job " + done.JobID + " is triggered"
	}
	return ""
}
