package run

import (
	"maps"
	"time"
)

// Phase is a part of a run's life whose time is measured. Each state but the terminal
// ones belongs to one phase, so the phases add up to the total.
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

// PhaseOf returns the phase of a state; empty for a terminal one.
func PhaseOf(s State) Phase { return phaseOf[s] }

// Tally is what a run counts for its metrics. Times are in milliseconds, so that the
// record stays small.
type Tally struct {
	// Phases is the time in each phase that the run has left, and Transitions how often
	// its state changed. The events have the time of each change.
	Phases      map[Phase]int64 `json:"phases,omitempty"`
	Transitions int             `json:"transitions,omitempty"`
	// Checked counts the constraints that were evaluated, Acted and ActFailed the
	// actions that were carried out and that failed.
	Checked   int `json:"checked,omitempty"`
	Acted     int `json:"acted,omitempty"`
	ActFailed int `json:"actFailed,omitempty"`
}

// left counts a transition from the run's state at the time now.
func (t Tally) left(r Run, next State, now time.Time) Tally {
	if t.Phases = maps.Clone(t.Phases); t.Phases == nil {
		t.Phases = map[Phase]int64{}
	}
	since := r.EnteredAt
	if next == ConditionPending { // the check begins when the run gets its slot
		t.spend(PhaseQueue, r.Slot.Since.Sub(since))
		t.spend(PhaseConstraintCheck, now.Sub(later(r.Slot.Since, since)))
	} else {
		t.spend(PhaseOf(r.State), now.Sub(since))
	}
	t.Transitions++
	return t
}

// spend adds to a phase. The clocks of two functions can differ, so d may be negative.
func (t Tally) spend(phase Phase, d time.Duration) {
	if d > 0 {
		t.Phases[phase] += d.Milliseconds()
	}
}

// Metrics are the figures of a run, in the contract's words.
type Metrics struct {
	Phases map[Phase]time.Duration
	// Total is the sum of the phases: from the creation to the end.
	Total                                                                   time.Duration
	StateTransitions                                                        int
	ConstraintsChecked, ConstraintsViolated, ActionsExecuted, ActionsFailed int
	RetryAttempt, MaxRetries                                                int
	// StartLatency is the time from the last attempt's request of a machine to its
	// start, ExitCode the code of its program; nil if it is unknown.
	StartLatency     time.Duration
	ExitCode         *int
	FinalState       State
	Success, Skipped bool
	ErrorMessage     string
}

// Metrics returns the figures of a run at the time now. The phase of a run that has
// not ended counts until then.
func (r Run) Metrics(now time.Time) Metrics {
	t := r.Tally
	m := Metrics{
		Phases: map[Phase]time.Duration{}, StateTransitions: t.Transitions,
		ConstraintsChecked: t.Checked, ConstraintsViolated: len(r.Violations), ActionsExecuted: t.Acted, ActionsFailed: t.ActFailed,
		RetryAttempt: max(r.Attempt.Number-1, 0), MaxRetries: r.Policy.Retry.MaxAttempts - 1,
		FinalState: r.State, Success: r.State == Completed && !r.Skipped, Skipped: r.Skipped,
	}
	for phase, spent := range t.Phases {
		m.Phases[phase] = time.Duration(spent) * time.Millisecond
	}
	if !r.State.Terminal() {
		m.Phases[PhaseOf(r.State)] += max(now.Sub(r.EnteredAt), 0)
	}
	for _, spent := range m.Phases {
		m.Total += spent
	}
	if a := r.Attempt; !a.StartedAt.IsZero() {
		m.StartLatency = max(a.StartedAt.Sub(a.IntentAt), 0)
	}
	if r.Attempt.Exit != nil {
		m.ExitCode = &r.Attempt.Exit.Code
	}
	if r.Fault != nil {
		m.ErrorMessage = r.Fault.Message
	}
	return m
}
