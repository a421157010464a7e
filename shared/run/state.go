package run

import (
	"fmt"
	"slices"
)

// State is where a run stands. The fourteen names are those of the
// run-lifecycle contract.
type State string

const (
	// PreRun waits for its time. Put there by the request when scheduledAt lies
	// ahead; taken out by admit at that time. It has no attempt and no slot.
	PreRun State = "PreRun"
	// Pending wants to start. Put there by the request, by admit when its time
	// has come or when a retry's delay is over; taken out by the commit that
	// gives it a slot of its pool. It is either about to be admitted or in the
	// pool's queue.
	Pending State = "Pending"
	// ConditionPending is about to have its constraints checked. Put there and
	// taken out by constrain. It holds its pool's slot.
	ConditionPending State = "ConditionPending"
	// ConditionRunning has its constraints checked. Put there and taken out by
	// constrain. It holds its pool's slot.
	ConditionRunning State = "ConditionRunning"
	// ActionPending violates a constraint and is about to act on it. Put there
	// by constrain, taken out by act.
	ActionPending State = "ActionPending"
	// ActionRunning acts on a violated constraint, which may mean to wait. Put
	// there and taken out by act.
	ActionRunning State = "ActionRunning"
	// ContainerCreating has an attempt whose machine is wanted. Put there by
	// admit (or constrain, act); taken out by the first that knows: the
	// worker's call, the machine seen running or gone, the start limit, a
	// cancel. It holds its pool's slot.
	ContainerCreating State = "ContainerCreating"
	// Running has a machine that started. Put there by launch, the worker's
	// first call or the sweep; taken out by the worker's result, the machine's
	// end, a limit or the end of a cancel's grace. It holds its pool's slot.
	Running State = "Running"
	// Terminating has an attempt that is over, with a result or a fault. Put
	// there by whoever told the end; taken out by terminate, once the machine
	// is gone and the output kept. It holds its pool's slot.
	Terminating State = "Terminating"
	// Retrying waits for its next attempt. Put there by terminate; taken out by
	// admit when the delay is over. It holds no slot of a pool.
	Retrying State = "Retrying"
	// Completed is an end: the result is there.
	Completed State = "Completed"
	// Failed is an end: Fault says why.
	Failed State = "Failed"
	// Cancelled is an end: somebody wished it.
	Cancelled State = "Cancelled"
	// Orphaned is an end: the run's execution was lost twice. Put there by the
	// sweep alone.
	Orphaned State = "Orphaned"
)

// States lists all states, in the order of a run's life.
func States() []State {
	return []State{
		PreRun, Pending, ConditionPending, ConditionRunning, ActionPending, ActionRunning,
		ContainerCreating, Running, Terminating, Retrying, Completed, Failed, Cancelled, Orphaned,
	}
}

// transitions is the whole truth about what may follow what: the table of the
// run-lifecycle contract, and ContainerCreating to Terminating, by which a
// start that failed or was cancelled is cleaned up.
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

// Valid says whether s is one of the fourteen.
func (s State) Valid() bool { _, ok := transitions[s]; return ok }

// Terminal says whether s is an end.
func (s State) Terminal() bool { return s.Valid() && len(transitions[s]) == 0 }

// Next lists the states that may follow s by the table. Orphaned, which may
// follow any state that is not an end, is not in it.
func (s State) Next() []State { return slices.Clone(transitions[s]) }

// CanBecome says whether a run in s may go to next. Any state that is not an
// end may become Orphaned.
func (s State) CanBecome(next State) bool {
	if next == Orphaned {
		return s.Valid() && !s.Terminal()
	}
	return slices.Contains(transitions[s], next)
}

// HasMachine says whether a run in s may have a machine.
func (s State) HasMachine() bool {
	return s == ContainerCreating || s == Running || s == Terminating
}

// IllegalTransition is the error of a decision that the table does not allow.
// It is a defect of this software.
type IllegalTransition struct{ From, To State }

func (e IllegalTransition) Error() string {
	return fmt.Sprintf("a run cannot go from %s to %s", e.From, e.To)
}
