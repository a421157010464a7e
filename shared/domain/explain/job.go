package explain

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

// JobReason says why a job has not fired. The constants are the complete list.
type JobReason string

// The reasons.
const (
	// JobPaused: the schedule is paused.
	JobPaused JobReason = "paused"
	// JobUnscheduled: the job has no schedule and runs only on request, or for events.
	JobUnscheduled JobReason = "no_schedule"
	// JobOver: the schedule has no further times.
	JobOver JobReason = "schedule_over"
	// JobWaiting: the time of the next firing has not been reached.
	JobWaiting JobReason = "next_firing"
	// JobFiring: a firing is due and is being committed.
	JobFiring JobReason = "firing_due"
	// JobLate: the wake-up of the job is late. The sweep fires it.
	JobLate JobReason = "wake_up_late"
	// JobAwaits: runs of jobs that this one comes after have ended, and others have not.
	JobAwaits JobReason = "awaits_upstream"
	// JobFollows: the job comes after others, and waits for no run of a graph that has begun.
	JobFollows JobReason = "after_others"
)

// JobReasons lists all reasons of jobs.
func JobReasons() []JobReason {
	return []JobReason{JobPaused, JobUnscheduled, JobOver, JobWaiting, JobFiring, JobLate, JobAwaits, JobFollows}
}

// JobFacts are the records about a job that the caller has read.
type JobFacts struct {
	Now time.Time
	// Slack is how late a wake-up may normally be.
	Slack time.Duration
	// Runs are the newest runs of the job, the newest first.
	Runs []run.Run
	// Needs are what the job needs in the newest graph that it has no run in; empty without one.
	Needs []run.Need
	// Sensor is what a polled sensor of the job knows; nil without one.
	Sensor *sensor.State
	// Jobs are the jobs that it comes after, by id. An unknown job is missing.
	Jobs map[string]job.Job
}

// JobExplanation says why a job has not fired.
type JobExplanation struct {
	Reason JobReason
	// Message is the reason in a sentence.
	Message string
	// Last is the last firing of the schedule, or the last run after other jobs or of an event, in Runs. Skipped are the skipped firings in Runs,
	// newest first.
	Last    *FiringExplanation
	Skipped []FiringExplanation
	// Upstream are the jobs that the job comes after, with their runs in the graph that it waits in.
	Upstream []run.Need
	// Graph are the jobs of the graph, each after those that it comes after; nil for a job alone.
	Graph []GraphJob
	// Change is a single change after which the job fires again; nil if it will fire without a
	// change.
	Change *Change
}

// FiringExplanation is a firing with the explanation of its run.
type FiringExplanation struct {
	Run run.Run
	Explanation
}

// Job returns the explanation of a job.
func Job(j job.Job, f JobFacts) JobExplanation {
	var x JobExplanation
	because := func(why JobReason, format string, args ...any) {
		x.Reason, x.Message = why, fmt.Sprintf(format, args...)
	}
	late := f.Now.Sub(j.WakeAt)
	switch {
	case len(j.Definition.After) > 0:
		x.follows(j, f)
	case !j.Definition.Scheduled() && j.Definition.Sensor != nil && j.Paused:
		because(JobPaused, "the job is paused since %s and takes no events", stamp(j.PausedAt))
		x.Change = &Change{Kind: ResumeJob, Name: j.ID}
	case !j.Definition.Scheduled() && j.Definition.Sensor != nil:
		because(JobUnscheduled, "the job has no schedule; %s", fromSensor(f.Sensor))
	case !j.Definition.Scheduled():
		because(JobUnscheduled, "the job has no schedule; only requests run it")
		x.Change = &Change{Kind: SetSchedule, Name: j.ID}
	case j.NextAt.IsZero():
		because(JobOver, "no time of the schedule %s is ahead", j.Definition.ScheduleText())
		x.Change = &Change{Kind: SetSchedule, Name: j.ID}
	case j.Paused:
		because(JobPaused, "the job is paused since %s", stamp(j.PausedAt))
		x.Change = &Change{Kind: ResumeJob, Name: j.ID}
	case late < 0:
		because(JobWaiting, "the next firing is that of %s, and is committed at %s", stamp(j.NextAt), stamp(j.WakeAt))
	case late < f.Slack:
		because(JobFiring, "the firing of %s is due since %s", stamp(j.NextAt), stamp(j.WakeAt))
	default:
		because(JobLate, "the wake-up of %s is %s late; the sweep fires the job", stamp(j.WakeAt), late.Round(time.Second))
	}
	if j.Definition.Scheduled() && f.Sensor != nil && !j.Paused {
		x.Message += "; " + fromSensor(f.Sensor)
	}
	for _, r := range f.Runs {
		if r.Trigger != run.TriggerSchedule && r.Trigger != run.TriggerCatchUp && r.Trigger != run.TriggerAfter && r.Trigger != run.TriggerEvent {
			continue
		}
		one := FiringExplanation{Run: r, Explanation: Run(r, Facts{Now: f.Now})}
		if x.Last == nil {
			x.Last = &one
		}
		if r.Skipped {
			x.Skipped = append(x.Skipped, one)
		}
	}
	return x
}
