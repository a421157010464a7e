package run

import (
	"fmt"
	"slices"
)

// State is the state of a run. The fourteen names are those of the
// run-lifecycle contract.
type State string

const (
	// PreRun waits for its scheduled time. A request with scheduledAt in the future creates it;
	// admit moves it out at that time. It has no attempt and no slot.
	PreRun State = "PreRun"
	// Pending waits for its start: it is about to be admitted, or is in the queue of its pool
	// or key. The request creates it; admit moves a run in at its scheduled time or after the
	// delay of a retry. The commit that grants a slot of its pool moves it out.
	Pending State = "Pending"
	// ConditionPending is about to have its constraints evaluated. The commit that grants a
	// slot of its pool moves a run in; constrain moves it out. It holds its pool's slot.
	ConditionPending State = "ConditionPending"
	// ConditionRunning has its constraints evaluated. constrain moves a run in before it calls
	// a hook, and moves it out. It holds its pool's slot.
	ConditionRunning State = "ConditionRunning"
	// ActionPending violates a constraint; the action is about to begin. constrain moves a run
	// in; act moves it out.
	ActionPending State = "ActionPending"
	// ActionRunning carries out the action on a violated constraint, which may be a wait. act
	// moves a run in and out.
	ActionRunning State = "ActionRunning"
	// ContainerCreating has an attempt whose machine is being created. admit, constrain or act
	// moves a run in. The first observation moves it out: a call of the worker, the machine
	// running or gone, the start limit, a cancel request. It holds its pool's slot. After a
	// throttled start it has no machine and no slot, and waits in the queue for the next
	// permitted start.
	ContainerCreating State = "ContainerCreating"
	// Running has a machine that started. launch, the worker's first call or the sweep moves a
	// run in. The worker's report, the end of the machine, a limit, or the end of the grace
	// period after a cancel request moves it out. It holds its pool's slot.
	Running State = "Running"
	// Terminating has an attempt that ended with a result or a fault. The fact that ends the
	// attempt moves a run in. terminate moves it out once the machine is gone and the output
	// accepted. It holds its pool's slot.
	Terminating State = "Terminating"
	// Retrying waits for its next attempt. terminate moves a run in, admit
	// moves it out after the delay. It holds no slot of a pool.
	Retrying State = "Retrying"
	// Completed is terminal: the run succeeded, or was skipped. The record of
	// skipped firings is created Completed.
	Completed State = "Completed"
	// Failed is terminal: Fault is the reason.
	Failed State = "Failed"
	// Cancelled is terminal: the run was cancelled on request.
	Cancelled State = "Cancelled"
	// Orphaned is terminal: the run's execution was lost twice. Only the sweep
	// moves a run in.
	Orphaned State = "Orphaned"
)

// States lists all states, in the order of a run's life.
func States() []State {
	return []State{
		PreRun, Pending, ConditionPending, ConditionRunning, ActionPending, ActionRunning,
		ContainerCreating, Running, Terminating, Retrying, Completed, Failed, Cancelled, Orphaned,
	}
}

// transitions lists the legal transitions: the table of the run-lifecycle contract, and
// ContainerCreating to Terminating, which cleans up after a failed or cancelled start.
var transitions = map[State][]State{
	PreRun:            {Pending, Cancelled},
	Pending:           {ConditionPending, ContainerCreating, Cancelled, Failed},
	ConditionPending:  {ConditionRunning, Cancelled, Failed},
	ConditionRunning:  {ActionPending, ContainerCreating, Cancelled, Failed},
	ActionPending:     {ActionRunning, Cancelled, Failed},
	ActionRunning:     {ContainerCreating, Completed, Cancelled, Failed},
	ContainerCreating: {Running, Terminating, Cancelled, Failed},
	Running:           {Terminating, Cancelled, Failed},
	Terminating:       {Completed, Failed, Retrying, Cancelled},
	Retrying:          {Pending, Failed, Cancelled},
	Completed:         {},
	Failed:            {},
	Cancelled:         {},
	Orphaned:          {},
}

// Valid reports whether s is one of the fourteen states.
func (s State) Valid() bool { _, ok := transitions[s]; return ok }

// Terminal reports whether s is terminal.
func (s State) Terminal() bool { return s.Valid() && len(transitions[s]) == 0 }

// Next returns the states that may follow s. It omits Orphaned, which may follow any state that
// is not terminal.
func (s State) Next() []State { return slices.Clone(transitions[s]) }

// CanBecome reports whether a run in s may enter next. Any state that is not
// terminal may become Orphaned.
func (s State) CanBecome(next State) bool {
	if next == Orphaned {
		return s.Valid() && !s.Terminal()
	}
	return slices.Contains(transitions[s], next)
}

// HasMachine reports whether a run in s may have a machine.
func (s State) HasMachine() bool {
	return s == ContainerCreating || s == Running || s == Terminating
}

// IllegalTransition is the error of a decision that the transition table does not allow. It
// indicates a defect of this package.
type IllegalTransition struct{ From, To State }

func (e IllegalTransition) Error() string {
	return fmt.Sprintf("illegal transition from %s to %s", e.From, e.To)
}
