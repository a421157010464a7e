package scenario

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Result is the answer of a play. Durations are in seconds, costs in USD.
type Result struct {
	Scenario string    `json:"scenario"`
	Seed     uint64    `json:"seed"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	// Limit is the limit of machines; 0 is no limit.
	Limit int         `json:"limit"`
	Jobs  []JobResult `json:"jobs"`
	Whole Whole       `json:"whole"`
	// Hours has the largest number of machines and of queued runs of each hour.
	Hours []Hour `json:"hours"`
}

// JobResult is the answer about a job.
type JobResult struct {
	Job string `json:"job"`
	// Due are the firings of the schedule, or of the jobs that the job comes after. Started are
	// those with a run that started, Missed those without, by the reason. The others wait at the
	// end.
	Due      int            `json:"due"`
	Started  int            `json:"started"`
	Missed   int            `json:"missed"`
	MissedBy map[string]int `json:"missedBy"`
	// Arrivals are the runs on request, Refused those that the server refused, by the code.
	Arrivals int            `json:"arrivals"`
	Refused  map[string]int `json:"refused"`
	// Runs are all runs that were not skipped; they have succeeded, failed, were cancelled or
	// have not ended.
	Runs      int `json:"runs"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Open      int `json:"open"`
	Retries   int `json:"retries"`
	// Failures are the failed attempts by code, FailedBy the failed runs.
	Failures map[string]int `json:"failures"`
	FailedBy map[string]int `json:"failedBy"`
	// Waits are the times from the request or the firing until the first start, Late those from
	// the scheduled time.
	Waits        Spread  `json:"waits"`
	Late         Spread  `json:"late"`
	MachineHours float64 `json:"machineHours"`
	Cost         float64 `json:"cost"`
}

// Whole is the answer about all jobs.
type Whole struct {
	Runs         int     `json:"runs"`
	MostMachines int     `json:"mostMachines"`
	MostQueued   int     `json:"mostQueued"`
	Machines     int     `json:"machines"`
	MachineHours float64 `json:"machineHours"`
	Cost         float64 `json:"cost"`
	Waits        Spread  `json:"waits"`
}

// Spread describes durations.
type Spread struct {
	Count   int     `json:"count"`
	Median  float64 `json:"median"`
	P95     float64 `json:"p95"`
	Longest float64 `json:"longest"`
}

// Hour has the largest figures of an hour.
type Hour struct {
	At       time.Time `json:"at"`
	Machines int       `json:"machines"`
	Queued   int       `json:"queued"`
}

// spreadOf returns the spread of durations in seconds. It sorts them.
func spreadOf(seconds []float64) Spread {
	if len(seconds) == 0 {
		return Spread{}
	}
	slices.Sort(seconds)
	at := func(share float64) float64 {
		return rounded(seconds[max(int(math.Ceil(share*float64(len(seconds))))-1, 0)], 1000)
	}
	return Spread{Count: len(seconds), Median: at(0.5), P95: at(0.95), Longest: at(1)}
}

func rounded(v, parts float64) float64 { return math.Round(v*parts) / parts }

// result returns the answer at the end of a play.
func (w *world) result() Result {
	t := w.tally
	t.fill(w.s.End())
	r := Result{Scenario: w.s.Name, Seed: w.s.Seed(), Start: w.s.start, End: w.s.End(), Limit: w.config.MaxMachines, Hours: t.hours}
	byJob := map[string][]*facts{}
	for _, f := range t.runs {
		byJob[f.job] = append(byJob[f.job], f)
	}
	var waits []float64
	for _, j := range w.s.jobs {
		of, waited := w.jobResult(j, byJob[j.definition.ID])
		waits = append(waits, waited...)
		r.Jobs = append(r.Jobs, of)
		r.Whole.Runs += of.Runs
		r.Whole.MachineHours += of.MachineHours
		r.Whole.Cost += of.Cost
	}
	r.Whole.MachineHours, r.Whole.Cost = rounded(r.Whole.MachineHours, 1000), rounded(r.Whole.Cost, 10_000)
	r.Whole.MostMachines, r.Whole.Machines, r.Whole.Waits = t.most, w.runner.created, spreadOf(waits)
	for _, h := range t.hours {
		r.Whole.MostQueued = max(r.Whole.MostQueued, h.Queued)
	}
	return r
}

// jobResult returns the answer about a job, and the waits of its runs.
func (w *world) jobResult(j plannedJob, runs []*facts) (of JobResult, waits []float64) {
	d := j.definition
	of = JobResult{
		Job: d.ID, MissedBy: map[string]int{}, Failures: map[string]int{}, FailedBy: map[string]int{}, Refused: map[string]int{},
	}
	if code := w.tally.refuse[d.ID]; code > 0 {
		of.Refused["refused"] = code
	}
	for _, firing := range job.Simulate(d, w.s.start, w.s.End().Add(-time.Nanosecond), 1_000_000) {
		of.Due += firing.Count
	}
	var late []float64
	for _, f := range runs {
		if len(d.After) > 0 && f.trigger == run.TriggerAfter {
			of.Due += f.count()
		}
		of.add(f)
		if f.started.IsZero() {
			continue
		}
		from := f.created
		if f.scheduled.After(from) {
			from = f.scheduled
		}
		waits = append(waits, max(f.started.Sub(from).Seconds(), 0))
		if f.fires() && !f.scheduled.IsZero() {
			late = append(late, max(f.started.Sub(f.scheduled).Seconds(), 0))
		}
	}
	of.Waits, of.Late = spreadOf(slices.Clone(waits)), spreadOf(late)
	if use := w.tally.spent[d.ID]; use != nil {
		of.MachineHours, of.Cost = rounded(use.seconds/3600, 1000), rounded(use.cost, 10_000)
	}
	return of, waits
}

// count is the number of firings of a record.
func (f *facts) count() int {
	if f.missed != nil {
		return cmp.Or(f.missed.Count, 1)
	}
	return 1
}

// fires reports whether the run is a firing of a schedule, or of the jobs before it.
func (f *facts) fires() bool {
	return f.trigger == run.TriggerSchedule || f.trigger == run.TriggerCatchUp || f.trigger == run.TriggerAfter
}

// add adds a run.
func (r *JobResult) add(f *facts) {
	switch {
	case f.skipped != "" && f.fires():
		r.Missed += f.count()
		r.MissedBy[f.skipped] += f.count()
		return
	case f.skipped != "":
		r.Refused[f.skipped]++
		return
	case f.fires() && !f.started.IsZero():
		r.Started++
	case f.fires() && f.state.Terminal():
		r.Missed++
		r.MissedBy[cmp.Or(f.failure, string(f.state))]++
	case f.trigger == run.TriggerManual:
		r.Arrivals++
	}
	r.Runs++
	r.Retries += max(f.attempts-1, 0)
	for code, n := range f.failures {
		r.Failures[code] += n
	}
	switch f.state {
	case run.Completed:
		r.Succeeded++
	case run.Cancelled:
		r.Cancelled++
	case run.Failed, run.Orphaned:
		r.Failed++
		r.FailedBy[cmp.Or(f.failure, string(f.state))]++
	default:
		r.Open++
	}
}
