package asl

import (
	"errors"
	"fmt"
	"time"
)

// Env is what a step may know of the outside.
type Env struct {
	// Now is the time of the stimulus; it counts in milliseconds.
	Now time.Time
	// Random gives 64 random bits: for jitter, tokens, States.UUID and
	// States.MathRandom.
	Random func() uint64
	// Token makes the task token of an attempt; nil makes one of Random.
	Token func(attempt int64) string
	// Identity is what the context object says about the execution.
	Identity Identity
	// Entered is told every state that is entered, in order. It may be nil.
	Entered func(state string)
}

// Identity is whose execution it is, for the context object.
type Identity struct {
	ID, Name, RoleARN      string
	MachineID, MachineName string
}

// Status is how an execution stands.
type Status string

// The ways in which an execution stands, in the words of Step Functions.
const (
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	TimedOut  Status = "TIMED_OUT"
	Aborted   Status = "ABORTED"
)

// Failure is an error with its cause. Either may be nil: a task can fail
// without saying how.
type Failure struct {
	Code, Cause *string

	// uncaught: neither Retry nor Catch sees it.
	uncaught bool
	// heartbeat: an error that States.HeartbeatTimeout matches as well.
	heartbeat bool
}

// NewFailure makes a failure with both.
func NewFailure(name, cause string) *Failure { return &Failure{Code: &name, Cause: &cause} }

// Name is the error's name, empty where there is none.
func (f *Failure) Name() string {
	if f.Code == nil {
		return ""
	}
	return *f.Code
}

// Error says both.
func (f *Failure) Error() string {
	if f.Cause == nil {
		return f.Name()
	}
	return f.Name() + ": " + *f.Cause
}

// Invocation is a call that the execution waits for. It is made again after a
// crash, with the same payload, token and attempt.
type Invocation struct {
	Attempt  int64 // unique within the execution
	State    string
	Resource string
	Payload  any // the state's input after Parameters
	// Token is the task's token; empty for a resource that has none.
	Token string
	// Callback: the token, not the invocation's result, completes the state.
	Callback bool
}

// Execution is one run of a machine. It is no more than a value: it is changed
// by its methods alone, by one goroutine at a time. Whoever cannot store a
// changed execution throws it away and decodes the stored one.
type Execution struct {
	machine  *Machine
	status   Status
	started  int64 // ms since 1970, as all times here
	input    any
	output   any
	failure  *Failure
	entered  int64
	events   int64
	attempts int64
	root     *frame
}

// frame is a graph that is being run: the machine's, a branch's or an item's.
type frame struct {
	execution *Execution
	parent    *frame
	index     int // of the branch or item
	item      any // of a Map
	graph     *graph
	over      bool // it ended, or its parent is no longer waiting for it

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
	lateAt    int64 // when the heartbeat is late
	early     *outcome
}

// outcome is what became of a state, a child or a try.
type outcome struct {
	output  any
	chosen  string // where a Choice goes
	failure *Failure
}

// children are the branches of a Parallel or the items of a Map.
type children struct {
	items   []any // of a Map
	total   int
	limit   int // at most so many at once; 0: no limit
	next    int // the first that has not begun
	left    int // not yet ended
	active  []*frame
	results []any
	ended   []bool
}

// Status is how the execution stands.
func (e *Execution) Status() Status { return e.status }

// Output is what a succeeded execution gave.
func (e *Execution) Output() any { return e.output }

// Failure says why an execution that has ended otherwise did.
func (e *Execution) Failure() *Failure { return e.failure }

// Entered counts the states entered.
func (e *Execution) Entered() int64 { return e.entered }

// Started is when the execution began.
func (e *Execution) Started() time.Time { return time.UnixMilli(e.started).UTC() }

// States are the names of the states that the execution is in now, outer ones
// first.
func (e *Execution) States() []string {
	var names []string
	e.visit(func(f *frame) {
		if f.state != nil {
			names = append(names, f.state.name)
		}
	})
	return names
}

// Deadline is when Tick must be called next; false where nothing is due ever.
func (e *Execution) Deadline() (time.Time, bool) {
	at := int64(0)
	e.deadlines(func(due int64, _ *frame) {
		if at == 0 || due < at {
			at = due
		}
	})
	return time.UnixMilli(at).UTC(), at != 0
}

// deadlines tells every time that is waited for; the frame is nil for the end
// of the whole execution.
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

// InFlight are the invocations that have not returned, in the order of their
// attempts' frames: what is to be made again when the execution was decoded. A
// state whose token was completed meanwhile is not among them; Resume goes on
// with it.
func (e *Execution) InFlight() []Invocation {
	var list []Invocation
	e.visit(func(f *frame) {
		if f.waiting == waitTask && f.attempt.inFlight && f.attempt.early == nil {
			list = append(list, f.invocation())
		}
	})
	return list
}

// Busy tells whether an invocation has not returned.
func (e *Execution) Busy() bool {
	return e.waitingFor(func(a *attempt) bool { return a.inFlight }) != nil
}

func (f *frame) invocation() Invocation {
	return Invocation{
		Attempt: f.attempt.id, State: f.state.name, Resource: f.state.resource, Payload: f.attempt.payload,
		Token: f.attempt.token, Callback: f.state.callback,
	}
}

// visit calls see with every frame that is alive, parents first.
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

// waitingFor finds the frame whose try the condition is true of.
func (e *Execution) waitingFor(is func(*attempt) bool) *frame {
	var found *frame
	e.visit(func(f *frame) {
		if f.waiting == waitTask && is(f.attempt) {
			found = f
		}
	})
	return found
}

// failure is an error of Step Functions itself in the frame's state, worded
// as Step Functions does.
func (f *frame) failure(name, format string, args ...any) *Failure {
	return NewFailure(name, fmt.Sprintf("An error occurred while executing the state '%s' (entered at the event id #%d). ",
		f.state.name, f.enteredEvent)+fmt.Sprintf(format, args...))
}

// asFailure makes an error of a path or a template a failure of the state.
func (f *frame) asFailure(err error) *Failure {
	if failed := (*Failure)(nil); asError(err, &failed) {
		return failed
	}
	return f.failure(errorRuntime, "%s", err)
}

func asError[E error](err error, target *E) bool { return err != nil && errors.As(err, target) }
