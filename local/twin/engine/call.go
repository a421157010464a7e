package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// The resources that a Task may name.
const (
	lambdaInvoke   = "arn:aws:states:::lambda:invoke"
	lambdaCallback = "arn:aws:states:::lambda:invoke.waitForTaskToken"
	lambdaARN      = "arn:aws:lambda:"
)

// InvokeError is the failure of a function, in the form of Lambda. Name is the error name for
// Retry and Catch, such as "Lambda.TooManyRequestsException" or the function's own error.
type InvokeError struct{ Name, Cause string }

func (e *InvokeError) Error() string { return e.Name + ": " + e.Cause }

// call is a pending invocation.
type call struct {
	entry      *entry
	invocation asl.Invocation
}

// invoke calls the function and returns its result as a stimulus. An error
// means that ctx interrupted the call.
func (e *Engine) invoke(ctx context.Context, c call) (stimulus, error) {
	function, payload, wrong := target(c.invocation)
	if wrong != "" {
		return e.failed(c, asl.NewFailure("States.Runtime", wrong)), nil
	}
	text, err := e.config.Invoke(context.WithValue(ctx, callerKey{}, c.entry), function, payload)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if named := (*InvokeError)(nil); errors.As(err, &named) {
		return e.failed(c, asl.NewFailure(named.Name, named.Cause)), nil
	}
	var result any
	if err == nil && len(text) > 0 {
		if result, err = document.Parse(text); err != nil {
			err = fmt.Errorf("its result is not JSON: %w", err)
		}
	}
	if err != nil {
		e.config.Log.WarnContext(ctx, "a function failed", "function", function, "state", c.invocation.State, "error", err)
		return e.failed(c, asl.NewFailure("Lambda.Unknown", "The function failed without naming an error.")), nil
	}
	if !strings.HasPrefix(c.invocation.Resource, lambdaARN) {
		result = document.NewObject(
			document.Member{Key: "ExecutedVersion", Value: "$LATEST"},
			document.Member{Key: "Payload", Value: result},
			document.Member{Key: "StatusCode", Value: json.Number("200")},
		)
	}
	return func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		return x.Returned(env, c.invocation.Attempt, result)
	}, nil
}

func (e *Engine) failed(c call, failure *asl.Failure) stimulus {
	return func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		return x.Failed(env, c.invocation.Attempt, failure)
	}
}

// target returns the function and its payload, or the cause of the failure if
// the parameters are invalid.
func target(i asl.Invocation) (function string, payload json.RawMessage, wrong string) {
	if strings.HasPrefix(i.Resource, lambdaARN) {
		return i.Resource, document.Append(nil, i.Payload), ""
	}
	parameters, ok := i.Payload.(*document.Object)
	if !ok {
		return "", nil, "The Parameters of lambda:invoke are not an object."
	}
	name, _ := parameters.Get("FunctionName")
	if function, ok = name.(string); !ok || function == "" {
		return "", nil, "The Parameters of lambda:invoke have no FunctionName."
	}
	value, ok := parameters.Get("Payload")
	if !ok {
		value = document.NewObject()
	}
	return function, document.Append(nil, value), ""
}
