package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// tally counts what happens to the runs and the machines. It is a port.Observer: it receives
// each committed record.
type tally struct {
	w *world
	// runs has the facts of each run in the order of their first commits.
	runs []*facts
	byID map[string]*facts
	// keys maps runs on request to what their draws depend on.
	keys   map[string]string
	hours  []Hour
	now    Hour
	most   int
	open   int
	spent  map[string]*machineUse
	refuse map[string]int
}

// facts is what the answer needs of a run.
type facts struct {
	job                         string
	trigger                     run.Trigger
	state                       run.State
	created, scheduled, started time.Time
	attempts                    int
	skipped                     string
	missed                      *run.Missed
	queued                      bool
	// failures counts the failed attempts by code.
	failures map[string]int
	failure  string
}

// machineUse is the use of machines by a job.
type machineUse struct{ seconds, cost float64 }

func newTally(w *world) *tally {
	return &tally{w: w, byID: map[string]*facts{}, keys: map[string]string{}, spent: map[string]*machineUse{}, refuse: map[string]int{}}
}

// keyOf returns what the draws of an attempt depend on besides its number: the firing, or the
// number of the arrival.
func (t *tally) keyOf(spec port.LaunchSpec) string {
	if key, ok := t.keys[spec.Owner.RunID]; ok {
		return key
	}
	if !spec.ScheduledAt.IsZero() {
		return spec.JobID + "@" + spec.ScheduledAt.UTC().Format(time.RFC3339)
	}
	return spec.Owner.RunID
}

// Committed implements port.Observer.
func (t *tally) Committed(_ context.Context, r run.Run, events []run.Event) {
	f := t.byID[r.ID]
	if f == nil {
		f = &facts{job: r.JobID, trigger: r.Trigger, created: r.CreatedAt, failures: map[string]int{}, state: run.Pending}
		t.byID[r.ID] = f
		t.runs = append(t.runs, f)
		t.open++
	}
	if r.State.Terminal() && !f.state.Terminal() {
		t.open--
	}
	f.state, f.scheduled, f.started, f.attempts, f.missed = r.State, r.ScheduledAt, r.StartedAt, r.Attempt.Number, r.Missed
	if r.Skipped {
		f.skipped = skipReason(r)
	}
	if f.failure = ""; r.State == run.Failed && r.Fault != nil {
		f.failure = codeOf(r.Fault, r.Attempt.Exit)
	}
	for _, e := range events {
		if e.Type == run.EventAttemptEnded && e.Fault != nil {
			f.failures[codeOf(e.Fault, e.Exit)]++
		}
	}
	if queued := r.Queued(); queued != f.queued {
		f.queued = queued
		if queued {
			t.change(func(h *Hour) { h.Queued++ })
		} else {
			t.change(func(h *Hour) { h.Queued-- })
		}
	}
}

// skipReason returns why a run or a firing was skipped.
func skipReason(r run.Run) string {
	switch {
	case r.Missed != nil:
		return string(r.Missed.Reason)
	case r.Overflowed != nil:
		return "skipped by the limit of its key"
	case len(r.Violations) > 0:
		return "skipped by " + string(r.Violations[0].Constraint)
	}
	return "skipped"
}

// codeOf returns the code of a failure, with the exit code of a program.
func codeOf(f *fault.Fault, exit *run.Exit) string {
	if f.Code == fault.ProgramExit && exit != nil {
		return fmt.Sprintf("%s %d", f.Code, exit.Code)
	}
	return string(f.Code)
}

// machines records the number of machines.
func (t *tally) machines(n int) {
	t.most = max(t.most, n)
	t.change(func(h *Hour) { h.Machines = n })
}

// machineEnded adds the time of a machine.
func (t *tally) machineEnded(m *machine) {
	use := t.spent[m.spec.JobID]
	if use == nil {
		use = &machineUse{}
		t.spent[m.spec.JobID] = use
	}
	seconds := t.w.time.Now.Sub(m.created).Seconds()
	use.seconds += seconds
	use.cost += seconds * t.w.s.File.priceOf(m.spec.CPUs, m.spec.MemoryMB)
}

// change changes the current figures. hours has the largest ones of each hour.
func (t *tally) change(do func(h *Hour)) {
	t.fill(t.w.time.Now)
	do(&t.now)
	last := &t.hours[len(t.hours)-1]
	last.Machines, last.Queued = max(last.Machines, t.now.Machines), max(last.Queued, t.now.Queued)
}

// fill begins the hours until a time.
func (t *tally) fill(until time.Time) {
	for {
		at := t.w.s.start.Add(time.Duration(len(t.hours)) * time.Hour)
		if at.After(until) || !at.Before(t.w.s.End()) && len(t.hours) > 0 {
			return
		}
		t.hours = append(t.hours, Hour{At: at, Machines: t.now.Machines, Queued: t.now.Queued})
	}
}
