package port

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrTokenGone is the answer about a token that was completed before, timed
// out, or belongs to a state that was left. It is a normal answer: whoever
// completes a token has committed the fact first, and the record tells the
// rest.
var ErrTokenGone = errors.New("the task token is gone")

// ErrNotFound is the answer about something that never was or is no more.
var ErrNotFound = errors.New("not found")

// Executions is the Step Functions side of a run: one execution per start,
// named after the run.
//
// Every call may be repeated. A call that returned nil is durable. Calls about
// different executions may run at once; so may calls about the same one, of
// which the first that completes a token wins. Callers repeat what failed;
// the adapter repeats only what its SDK repeats by itself.
type Executions interface {
	// Start begins the execution called name (1 to 80 letters, digits, '-' and
	// '_') with input, a JSON object. Starting a name again with the same
	// input is nil, whether that execution still runs or has ended; with
	// another input it is an error, and changes nothing.
	Start(ctx context.Context, name string, input json.RawMessage) error
	// Succeed completes the token's state with output, a JSON object.
	// ErrTokenGone where the token is no longer waited for.
	Succeed(ctx context.Context, token string, output json.RawMessage) error
	// Fail completes the token's state with an error (a name without
	// "States.") and its cause. ErrTokenGone as for Succeed.
	Fail(ctx context.Context, token, name, cause string) error
	// Heartbeat starts the state's heartbeat clock anew. A new process behind the
	// port may start it once more: it never runs out sooner than this call says.
	// ErrTokenGone as for Succeed.
	Heartbeat(ctx context.Context, token string) error
	// Stop ends the execution as aborted; its state is left, its tokens are
	// gone. It may come between a token's completion and the next state.
	// Stopping one that has ended, or that never was, is nil.
	Stop(ctx context.Context, name, cause string) error
	// Describe tells how the execution stands. ErrNotFound for a name that was
	// never started, or whose end is more than 90 days ago.
	Describe(ctx context.Context, name string) (Execution, error)
}

// ExecutionStatus is how an execution stands, in the words of Step Functions.
type ExecutionStatus string

// The five ways in which an execution can stand.
const (
	ExecutionRunning   ExecutionStatus = "RUNNING"
	ExecutionSucceeded ExecutionStatus = "SUCCEEDED"
	ExecutionFailed    ExecutionStatus = "FAILED"
	ExecutionTimedOut  ExecutionStatus = "TIMED_OUT"
	ExecutionAborted   ExecutionStatus = "ABORTED"
)

// Execution is what Describe tells.
type Execution struct {
	Name   string
	Status ExecutionStatus
	// Error and Cause say why a failed or aborted execution ended.
	Error, Cause string
	// Transitions counts the states entered, where the adapter can tell; 0
	// where it cannot.
	Transitions int
}
