package asl

import (
	"errors"
	"fmt"
	"time"
)

// Env provides time, randomness and identity to a step.
type Env struct {
	// Now is the time of the stimulus, in millisecond precision.
	Now time.Time
	// Random returns 64 random bits for jitter, tokens, States.UUID and
	// States.MathRandom.
	Random func() uint64
	// Token returns the task token of an attempt; nil draws one from Random.
	Token func(attempt int64) string
	// Identity describes the execution in the context object.
	Identity Identity
	// MaxEvents limits the events of the history. Zero means the constant MaxEvents.
	MaxEvents int64
	// Entered, if not nil, is called with every state that the execution enters, in order.
	Entered func(state string)
}

func (e *Env) maxEvents() int64 {
	if e.MaxEvents == 0 {
		return MaxEvents
	}
	return e.MaxEvents
}

// Identity describes an execution in the context object.
type Identity struct {
	ID, Name, RoleARN      string
	MachineID, MachineName string
}

// Status is the status of an execution.
type Status string

// The statuses, as Step Functions names them.
const (
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	TimedOut  Status = "TIMED_OUT"
	Aborted   Status = "ABORTED"
)

// Failure is an error with its cause. Both are optional, as a task may fail
// without either.
type Failure struct {
	Code, Cause *string

	// uncaught failures are ignored by Retry and Catch.
	uncaught bool
	// heartbeat failures also match States.HeartbeatTimeout.
	heartbeat bool
}

// NewFailure returns a Failure with an error and a cause.
func NewFailure(name, cause string) *Failure { return &Failure{Code: &name, Cause: &cause} }

// Name returns the error's name, or "".
func (f *Failure) Name() string {
	if f.Code == nil {
		return ""
	}
	return *f.Code
}

// Error returns the name and the cause.
func (f *Failure) Error() string {
	if f.Cause == nil {
		return f.Name()
	}
	return f.Name() + ": " + *f.Cause
}

// Invocation is a call that the execution waits for. After a crash it is
// repeated with the same payload, token and attempt.
type Invocation struct {
	Attempt  int64 // unique within the execution
	State    string
	Resource string
	Payload  any // the state's input after Parameters
	// Token is the task's token, empty for a resource without one.
	Token string
	// Callback means that the token, not the invocation's result, completes the
	// state.
	Callback bool
}

// Execution is an execution of a machine. It is not safe for concurrent use. A caller that
// cannot store a changed execution must discard it and decode the stored one.
type Execution struct {
	machine  *Machine
	status   Status
	started  int64 // in ms since 1970, like all times here
	input    any
	output   any
	failure  *Failure
	entered  int64
	events   int64
	attempts int64
	root     *frame
}

// frame is a running graph: the machine's, a branch's or an item's.
type frame struct {
	execution *Execution
	parent    *frame
	index     int // of the branch or item
	item      any // of a Map
	graph     *graph
	over      bool // it has ended, or its parent no longer waits for it

	state        *state
	input        any // raw
	enteredAt    int64
	enteredEvent int64
	retries      int64
	used         []int64 // tries of each retrier

	waiting  waiting
	until    int64    // of waitTime and waitRetry
	attempt  *attempt // of waitTask
	children *children

	context any // cache of the context object
}

type waiting int

const (
	waitNothing waiting = iota
	waitTime            // a Wait
	waitRetry           // the delay before a retry
	waitTask
	waitChildren
)

// attempt is one try of a Task.
type attempt struct {
	id        int64
	token     string
	payload   any  // while in flight
	inFlight  bool // the invocation has not returned
	timeoutAt int64
	heartbeat int64 // ms; 0: none
	lateAt    int64 // deadline of the heartbeat
	early     *outcome
}

// outcome is the result of a state, a child or a try.
type outcome struct {
	output  any
	chosen  string // the target of a Choice
	failure *Failure
}

// children are the branches of a Parallel or the items of a Map.
type children struct {
	items   []any // of a Map
	total   int
	limit   int // MaxConcurrency; 0: no limit
	next    int // the first that has not started
	left    int // not yet ended
	active  []*frame
	results []any
	ended   []bool
}

// Status returns the status.
func (e *Execution) Status() Status { return e.status }

// Output returns the output of a succeeded execution.
func (e *Execution) Output() any { return e.output }

// Failure returns the failure of an execution that has ended without success.
func (e *Execution) Failure() *Failure { return e.failure }

// Entered returns the number of states entered.
func (e *Execution) Entered() int64 { return e.entered }

// Started returns the start time.
func (e *Execution) Started() time.Time { return time.UnixMilli(e.started).UTC() }

// States returns the names of the current states, outer ones first.
func (e *Execution) States() []string {
	var names []string
	e.visit(func(f *frame) {
		if f.state != nil {
			names = append(names, f.state.name)
		}
	})
	return names
}

// Deadline returns the time of the next Tick, or false if there is no deadline.
func (e *Execution) Deadline() (time.Time, bool) {
	at := int64(0)
	e.deadlines(func(due int64, _ *frame) {
		if at == 0 || due < at {
			at = due
		}
	})
	return time.UnixMilli(at).UTC(), at != 0
}

// deadlines calls tell with every deadline and its frame. The frame is nil for the timeout of
// the execution itself.
func (e *Execution) deadlines(tell func(due int64, f *frame)) {
	if e.status != Running {
		return
	}
	if e.machine.timeoutSeconds > 0 {
		tell(e.started+e.machine.timeoutSeconds*1000, nil)
	}
	e.visit(func(f *frame) {
		switch f.waiting {
		case waitNothing, waitChildren:
		case waitTime, waitRetry:
			tell(f.until, f)
		case waitTask:
			tell(f.attempt.due(), f)
		}
	})
}

func (a *attempt) due() int64 {
	if a.lateAt != 0 && a.lateAt < a.timeoutAt {
		return a.lateAt
	}
	return a.timeoutAt
}

// InFlight returns the invocations that have not returned, in the order of their frames. The
// caller repeats them after Decode. It omits states whose token was completed before the
// invocation returned, because Resume advances those.
func (e *Execution) InFlight() []Invocation {
	var list []Invocation
	e.visit(func(f *frame) {
		if f.waiting == waitTask && f.attempt.inFlight && f.attempt.early == nil {
			list = append(list, f.invocation())
		}
	})
	return list
}

// Busy reports whether any invocation has not returned.
func (e *Execution) Busy() bool {
	return e.waitingFor(func(a *attempt) bool { return a.inFlight }) != nil
}

func (f *frame) invocation() Invocation {
	return Invocation{
		Attempt: f.attempt.id, State: f.state.name, Resource: f.state.resource, Payload: f.attempt.payload,
		Token: f.attempt.token, Callback: f.state.callback,
	}
}

// visit calls see with every live frame, parents first.
func (e *Execution) visit(see func(*frame)) {
	if e.root != nil {
		e.root.visit(see)
	}
}

func (f *frame) visit(see func(*frame)) {
	see(f)
	if f.children != nil {
		for _, child := range f.children.active {
			child.visit(see)
		}
	}
}

// waitingFor returns the last frame whose try satisfies the condition, or nil.
func (e *Execution) waitingFor(is func(*attempt) bool) *frame {
	var found *frame
	e.visit(func(f *frame) {
		if f.waiting == waitTask && is(f.attempt) {
			found = f
		}
	})
	return found
}

// failure returns an error of the frame's state, worded as Step Functions does.
func (f *frame) failure(name, format string, args ...any) *Failure {
	return NewFailure(name, fmt.Sprintf("An error occurred while executing the state '%s' (entered at the event id #%d). ",
		f.state.name, f.enteredEvent)+fmt.Sprintf(format, args...))
}

// asFailure converts an error of a path or a template to a failure of the
// state.
func (f *frame) asFailure(err error) *Failure {
	if failed := (*Failure)(nil); asError(err, &failed) {
		return failed
	}
	return f.failure(errorRuntime, "%s", err)
}

func asError[E error](err error, target *E) bool { return err != nil && errors.As(err, target) }
