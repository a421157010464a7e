package port

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrTokenGone is returned for a token that was completed, has timed out, or belongs to a state
// that the execution has left. It is a normal answer: the caller has already committed its
// fact, and the record has the result.
var ErrTokenGone = errors.New("unknown or expired task token")

// ErrNotFound is returned for something that does not exist or has been
// removed.
var ErrNotFound = errors.New("not found")

// Executions starts and stops the Step Functions executions of runs, and completes their task
// tokens. Each start has an execution of its own, named after the run.
//
// Every call is idempotent. A call that returned nil is durable. Calls are safe for concurrent
// use; of concurrent completions of one token the first wins. Callers retry failures; an
// adapter retries only what its SDK retries.
type Executions interface {
	// Start starts the execution called name (1 to 80 letters, digits, '-' and '_') with input,
	// a JSON object. Starting a name again with the same input returns nil, whether that
	// execution runs or has ended. With another input it returns an error and changes nothing.
	Start(ctx context.Context, name string, input json.RawMessage) error
	// Succeed completes the token's state with output, a JSON object. It
	// returns ErrTokenGone if the state no longer waits for the token.
	Succeed(ctx context.Context, token string, output json.RawMessage) error
	// Fail completes the token's state with an error (a name without "States.")
	// and its cause. It returns ErrTokenGone as Succeed does.
	Fail(ctx context.Context, token, name, cause string) error
	// Heartbeat restarts the heartbeat timeout of the token's state. A restarted adapter may
	// restart it once more, so the timeout can expire later than this call implies, but not
	// earlier. An adapter tries it once. It returns ErrTokenGone as Succeed does.
	Heartbeat(ctx context.Context, token string) error
	// Stop aborts the execution and invalidates its tokens. It may run between
	// a token's completion and the next state. Stopping an execution that has
	// ended or never existed returns nil.
	Stop(ctx context.Context, name, cause string) error
	// Describe returns the status of the execution. It returns ErrNotFound for
	// a name that was never started or that ended more than 90 days ago.
	Describe(ctx context.Context, name string) (Execution, error)
}

// ExecutionCall is a call of Executions.
type ExecutionCall struct {
	// Start is the name of the execution to start with Data. If it is empty, the call completes
	// Token: with Data, or with an error if Error is not empty.
	Start, Token string
	Data         json.RawMessage
	Error, Cause string
}

// Make makes the call.
func (c ExecutionCall) Make(ctx context.Context, executions Executions) error {
	switch {
	case c.Start != "":
		return executions.Start(ctx, c.Start, c.Data)
	case c.Error != "":
		return executions.Fail(ctx, c.Token, c.Error, c.Cause)
	}
	return executions.Succeed(ctx, c.Token, c.Data)
}

// JoinedExecutions are Executions that are stored in the same database as the runs, so that a
// commit can include calls.
type JoinedExecutions interface {
	Executions
	// Join returns a context for one commit of the store. The commit makes the calls too: both
	// are durable, or neither. A commit in an invocation also stores the execution that made
	// the invocation. The caller calls finish once, after the commit or without one; the calls
	// take effect then. finish reports for each call whether it was made. Calls that were not
	// made must be made as usual.
	Join(ctx context.Context, calls ...ExecutionCall) (joined context.Context, finish func() (made []bool))
}

// ExecutionStatus is the status of an execution, in Step Functions' spelling.
type ExecutionStatus string

// The statuses of an execution.
const (
	ExecutionRunning   ExecutionStatus = "RUNNING"
	ExecutionSucceeded ExecutionStatus = "SUCCEEDED"
	ExecutionFailed    ExecutionStatus = "FAILED"
	ExecutionTimedOut  ExecutionStatus = "TIMED_OUT"
	ExecutionAborted   ExecutionStatus = "ABORTED"
)

// Execution is the result of Describe.
type Execution struct {
	Name   string
	Status ExecutionStatus
	// Error and Cause say why a failed or aborted execution ended.
	Error, Cause string
	// Transitions is the number of entered states; 0 if the adapter cannot count them.
	Transitions int
}
