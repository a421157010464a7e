package run

import (
	"maps"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Phase is a part of a run's life whose time is measured. Each state except the terminal ones
// belongs to one phase, so the phases add up to the total time.
type Phase string

// The phases.
const (
	PhasePreRun            Phase = "preRun"
	PhaseQueue             Phase = "queue"
	PhaseConstraintCheck   Phase = "constraintCheck"
	PhaseActionExecution   Phase = "actionExecution"
	PhaseContainerCreation Phase = "containerCreation"
	PhaseExecution         Phase = "execution"
	PhaseTermination       Phase = "termination"
	PhaseRetryDelay        Phase = "retryDelay"
)

// Phases lists all phases, in the order of a run's life.
func Phases() []Phase {
	return []Phase{
		PhasePreRun, PhaseQueue, PhaseConstraintCheck, PhaseActionExecution,
		PhaseContainerCreation, PhaseExecution, PhaseTermination, PhaseRetryDelay,
	}
}

var phaseOf = map[State]Phase{
	PreRun: PhasePreRun, Pending: PhaseQueue, ConditionPending: PhaseConstraintCheck, ConditionRunning: PhaseConstraintCheck,
	ActionPending: PhaseActionExecution, ActionRunning: PhaseActionExecution, ContainerCreating: PhaseContainerCreation,
	Running: PhaseExecution, Terminating: PhaseTermination, Retrying: PhaseRetryDelay,
}

// PhaseOf returns the phase of a state; empty for a terminal state.
func PhaseOf(s State) Phase { return phaseOf[s] }

// Tally has the counters of a run's metrics. Times are in milliseconds, to keep the record
// small. They are differences of times truncated to the millisecond, so the phases add up
// exactly to the total time of the run.
type Tally struct {
	// States has the states that the run has left, or entered after its first one. Moves counts
	// its transitions.
	States map[State]StateTime `json:"in,omitempty"`
	Moves  int                 `json:"moves,omitempty"`
	// Checked counts the evaluated constraints. Acted and ActFailed count the actions before
	// the end that were carried out or failed, ActedAfter and FailedAfter those after the end.
	Checked     int `json:"checked,omitempty"`
	Acted       int `json:"acted,omitempty"`
	ActFailed   int `json:"actFailed,omitempty"`
	ActedAfter  int `json:"actedAfter,omitempty"`
	FailedAfter int `json:"failedAfter,omitempty"`
	// Heartbeats counts the heartbeats of the attempts that have ended.
	Heartbeats int `json:"heartbeats,omitempty"`
	// Calls counts the calls to runner platforms, by runner. Calls after the last commit of the
	// run are not counted.
	Calls map[string]int `json:"calls,omitempty"`
}

// Called returns the tally with further calls to runner platforms.
func (t Tally) Called(by map[string]int) Tally {
	if len(by) == 0 {
		return t
	}
	if t.Calls = maps.Clone(t.Calls); t.Calls == nil {
		t.Calls = map[string]int{}
	}
	for runner, n := range by {
		t.Calls[runner] += n
	}
	return t
}

// StateTime has two durations in milliseconds: from the run's creation to its last entry into a
// state, and the total time in that state until its last exit.
type StateTime [2]int64

const entered, spent = 0, 1

// afterTransition counts a transition from the run's state to next at the time now.
func (t Tally) afterTransition(r Run, next State, now time.Time) Tally {
	if t.States = maps.Clone(t.States); t.States == nil {
		t.States = map[State]StateTime{}
	}
	since := r.EnteredAt
	if next == ConditionPending && r.Slot.State == platform.SlotHeld { // the check begins when the run gets its slot
		check := later(r.Slot.Since, since)
		t.spend(r.State, since, check)
		t.spend(next, check, now)
	} else {
		t.spend(r.State, since, now)
	}
	in := t.States[next]
	in[entered] = max(between(r.CreatedAt, now), 0)
	t.States[next] = in
	t.Moves++
	return t
}

// spend adds the time between since and until to a state. Clocks of two functions can differ,
// so until may be before since; then it adds 0.
func (t Tally) spend(s State, since, until time.Time) {
	in := t.States[s]
	in[spent] += max(between(since, until), 0)
	t.States[s] = in
}

// count counts an event about an action; it ignores other events.
func (t *Tally) count(e Event) {
	acted, failed := &t.Acted, &t.ActFailed
	if e.State.Terminal() {
		acted, failed = &t.ActedAfter, &t.FailedAfter
	}
	switch e.Type {
	case EventActionExecuted:
		*acted++
	case EventActionFailed:
		*failed++
	}
}

// between returns the milliseconds between two times, each truncated to the millisecond.
func between(since, until time.Time) int64 { return until.UnixMilli() - since.UnixMilli() }

// Metrics are the figures of a run. Times are whole milliseconds.
type Metrics struct {
	Phases map[Phase]time.Duration
	// Total is the sum of the phases: the time from the creation to the end.
	Total            time.Duration
	StateTransitions int
	// Entered is when the run last entered each state.
	Entered                                                                 map[State]time.Time
	ConstraintsChecked, ConstraintsViolated, ActionsExecuted, ActionsFailed int
	// RetryAttempt counts from 0.
	RetryAttempt, MaxRetries int
	// StartLatency is the time from the last attempt's request of a machine to its start.
	// ExitCode is the exit code of its program; nil if it is unknown.
	StartLatency time.Duration
	ExitCode     *int
	// Heartbeats counts the heartbeats of ended attempts.
	Heartbeats int
	// Calls counts the calls to runner platforms, by runner; nil without calls.
	Calls map[string]int
	// State is the state of the run; the final one if the run has ended.
	State            State
	Success, Skipped bool
	ErrorMessage     string
}

// EndMetrics returns the metrics of a run as of its end event e, without the actions that
// follow the end. ended is false if e is another event. r is the record as of the event or
// later.
func (r Run) EndMetrics(e Event) (m Metrics, ended bool) {
	if !e.Ends() {
		return m, false
	}
	m = r.Metrics(e.At)
	m.ActionsExecuted, m.ActionsFailed = r.Tally.Acted, r.Tally.ActFailed
	return m, true
}

// Metrics returns the figures of a run at the time now. The current phase of a run that has not
// ended counts until now.
func (r Run) Metrics(now time.Time) Metrics {
	t := r.Tally
	m := Metrics{
		Phases: map[Phase]time.Duration{}, StateTransitions: t.Moves, Entered: map[State]time.Time{},
		ConstraintsChecked: t.Checked, ConstraintsViolated: len(r.Violations),
		ActionsExecuted: t.Acted + t.ActedAfter, ActionsFailed: t.ActFailed + t.FailedAfter,
		RetryAttempt: max(r.Attempt.Number-1, 0), MaxRetries: max(r.Policy.Retry.MaxAttempts-1, 0), Heartbeats: t.Heartbeats, Calls: t.Calls,
		State: r.State, Success: r.State == Completed && !r.Skipped, Skipped: r.Skipped,
	}
	if t.Moves == 0 {
		m.Entered[r.State] = r.CreatedAt.Truncate(time.Millisecond)
	}
	for state, in := range t.States {
		m.Entered[state] = time.UnixMilli(r.CreatedAt.UnixMilli() + in[entered]).UTC()
		if phase := PhaseOf(state); in[spent] > 0 {
			m.Phases[phase] += time.Duration(in[spent]) * time.Millisecond
		}
	}
	if !r.State.Terminal() {
		m.Phases[PhaseOf(r.State)] += time.Duration(max(between(r.EnteredAt, now), 0)) * time.Millisecond
	}
	for _, took := range m.Phases {
		m.Total += took
	}
	if a := r.Attempt; !a.StartedAt.IsZero() {
		m.StartLatency = time.Duration(max(between(a.IntentAt, a.StartedAt), 0)) * time.Millisecond
	}
	if r.Attempt.Exit != nil {
		m.ExitCode = &r.Attempt.Exit.Code
	}
	if r.Fault != nil {
		m.ErrorMessage = r.Fault.Message
	}
	return m
}
