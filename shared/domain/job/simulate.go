package job

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Decision is the result of a simulated firing.
type Decision string

// The decisions.
const (
	DecisionRun     Decision = "run"     // no constraint can prevent the run
	DecisionDepends Decision = "depends" // constraints can prevent the run; see the reasons
	DecisionSkip    Decision = "skip"    // the firing is missed and skipped; see the reason
)

// Outage is a period during which nothing fires: From <= t < To.
type Outage struct{ From, To time.Time }

// SimulatedFiring is a firing from Simulate, or a span of firings that are skipped together.
type SimulatedFiring struct {
	// ScheduledAt is the nominal time, in the zone of the schedule; the first one of a span.
	ScheduledAt time.Time
	// Until is the last time of a span, Count the number of its times. They are ScheduledAt and
	// 1 for a single firing.
	Until time.Time
	Count int
	// FiredAt is when the firing is committed: its nominal time, or the end of an outage.
	FiredAt  time.Time
	Trigger  run.Trigger
	Decision Decision
	// Reasons has a sentence for each constraint that is evaluated, or for the skip.
	Reasons []string
}

// Simulate returns at most limit firings of a valid definition, after < t <= until, with the
// effect of its constraints. It assumes that the schedule was committed at after. Without an
// outage each firing is on time; jitter is ignored. down lists the outages in any order; they
// may overlap.
func Simulate(d Definition, after, until time.Time, limit int, down ...Outage) []SimulatedFiring {
	s, ok := d.Times()
	if !ok {
		return nil
	}
	zone := s.zone()
	d.Jitter = ""
	j := Job{Definition: d, Since: after}.scheduled(after)
	var firings []SimulatedFiring
	for !j.WakeAt.IsZero() && !j.NextAt.After(until) {
		now := firstUptime(j.WakeAt, down)
		var due []Firing
		j, due = j.Fire(now, 0, limit)
		for _, f := range due {
			if len(firings) == limit || f.At.After(until) {
				return firings
			}
			firings = append(firings, d.simulated(f, now, zone))
		}
	}
	return firings
}

// firstUptime returns the first time from at that is not in an outage.
func firstUptime(at time.Time, down []Outage) time.Time {
	for moved := true; moved; {
		moved = false
		for _, o := range down {
			if !at.Before(o.From) && at.Before(o.To) {
				at, moved = o.To, true
			}
		}
	}
	return at
}

func (d Definition) simulated(f Firing, now time.Time, zone *time.Location) SimulatedFiring {
	shown := SimulatedFiring{
		ScheduledAt: f.At.In(zone), Until: f.At.In(zone), Count: 1, FiredAt: now.In(zone), Trigger: f.Trigger, Decision: DecisionRun,
	}
	if f.Skipped != nil {
		shown.Until, shown.Count, shown.Decision, shown.Reasons = f.Skipped.Until.In(zone), f.Skipped.Count, DecisionSkip, []string{f.Skipped.String()}
		return shown
	}
	shown.Reasons = d.demands(f.At)
	if f.InTurn && d.has(spec.MaxConcurrentRuns) {
		shown.Reasons[0] = fmt.Sprintf("%s: starts after the runs of earlier times, at most %d at a time", spec.MaxConcurrentRuns, *d.Constraints.MaxConcurrentRuns)
	}
	if len(shown.Reasons) > 0 {
		shown.Decision = DecisionDepends
	}
	return shown
}

// demands describes the effect of each constraint before the run on a firing.
func (d Definition) demands(at time.Time) []string {
	c := d.Constraints
	if c == nil {
		return nil
	}
	var reasons []string
	demand := func(name spec.Constraint, format string, args ...any) {
		reasons = append(reasons, string(name)+": "+fmt.Sprintf(format, args...)+"; otherwise "+d.response(name))
	}
	if c.MaxConcurrentRuns != nil {
		if *c.MaxConcurrentRuns == 1 {
			demand(spec.MaxConcurrentRuns, "starts if no other run of the job is under way")
		} else {
			demand(spec.MaxConcurrentRuns, "starts while fewer than %d of the job's runs are under way", *c.MaxConcurrentRuns)
		}
	}
	if given(c.RequirePreviousSuccess) {
		demand(spec.RequirePreviousSuccess, "starts if the last run before %s succeeded", at.UTC().Format(time.RFC3339))
	}
	if c.CatchUpWindow != "" {
		demand(spec.CatchUpWindow, "starts until %s", at.Add(c.CatchUpWindow.Value()).UTC().Format(time.RFC3339))
	}
	if c.PreRunHook != nil {
		demand(spec.PreRunHook, "starts if %s allows it", c.PreRunHook.URL)
	}
	return reasons
}

// response describes the action on a violated constraint.
func (d Definition) response(name spec.Constraint) string {
	action := Action{Type: spec.ActionSkip}
	if d.Actions != nil {
		if one, ok := d.Actions.OnViolationOf[name]; ok {
			action = one
		} else if d.Actions.OnConstraintViolation != nil {
			action = *d.Actions.OnConstraintViolation
		}
	}
	done := action.run()
	switch action.Type {
	case spec.ActionSkip:
		return "the firing is skipped"
	case spec.ActionRetryLater:
		return fmt.Sprintf("it is checked every %s for at most %s", short(done.Delay), short(done.Limit))
	case spec.ActionKillOld:
		return "older runs are cancelled first"
	case spec.ActionWait:
		return fmt.Sprintf("it waits for at most %s", short(done.Limit))
	case spec.ActionWebhook:
		return "a webhook is called"
	case spec.ActionTriggerJob:
		return "job " + done.JobID + " is triggered"
	}
	return ""
}
