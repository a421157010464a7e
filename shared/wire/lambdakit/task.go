// Package lambdakit adapts use cases to tasks of a state machine.
//
// A TaskFunc is a task: it accepts JSON and returns JSON or a named error. The local engine
// calls it in process, Lambda through package process. Both name its errors with ErrorName, so
// that a Retry of the state machine has the same effect in both.
//
// A panic fails the call, not the process. Inputs are validated before a use case runs. For
// HTTP see httpkit.
package lambdakit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"

	"github.com/sortie-dev/sortie/shared/app/runs"
)

// TaskFunc handles one call. Its input and output are JSON objects. It is safe for concurrent
// use.
type TaskFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// InvalidInput is the error of a call with an invalid input, which is a defect of the state
// machine. A retry has the same result.
type InvalidInput struct{ Cause error }

func (e InvalidInput) Error() string { return "invalid input: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e InvalidInput) Unwrap() error { return e.Cause }

// Panicked is the error of a call that panicked.
type Panicked struct {
	Value string
	// Stack is for the log.
	Stack string
}

func (e Panicked) Error() string { return "panic: " + e.Value }

// Task returns a TaskFunc that calls f with the decoded input and encodes its output. It
// ignores members that In does not have, because the input may come from another version of
// this program.
//
// An error that is or wraps runs.TryAgain is returned as TryAgain, because the Lambda
// runtime names errors by their type.
func Task[In, Out any](f func(context.Context, In) (Out, error)) TaskFunc {
	return func(ctx context.Context, input json.RawMessage) (output json.RawMessage, err error) {
		defer func() {
			if r := recover(); r != nil {
				output, err = nil, Panicked{Value: fmt.Sprint(r), Stack: string(debug.Stack())}
			}
		}()
		in, err := decode[In](input)
		if err != nil {
			return nil, InvalidInput{err}
		}
		out, err := f(ctx, in)
		if _, outermost := err.(runs.TryAgain); !outermost && ErrorName(err) == tryAgain { //nolint:errorlint // the type that the runtime sees
			err = runs.TryAgain{Cause: err}
		}
		if err != nil {
			return nil, err
		}
		if output, err = json.Marshal(out); err != nil {
			return nil, fmt.Errorf("cannot encode the output: %w", err)
		}
		return output, nil
	}
}

// decode decodes exactly one JSON object.
func decode[In any](input json.RawMessage) (In, error) {
	var in In
	if text := bytes.TrimSpace(input); len(text) == 0 || text[0] != '{' {
		return in, errors.New("want a JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(input))
	if err := decoder.Decode(&in); err != nil {
		return in, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return in, errors.New("want one JSON object, got more text after it")
	}
	return in, nil
}

// tryAgain is the name of an error after which the state machine retries.
const tryAgain = "TryAgain"

// ErrorName returns the name of an error in the state machine. The name is "TryAgain" for an
// error that is or wraps runs.TryAgain. Otherwise it is the Go type of the error, as in
// the Lambda runtime. It is empty for nil.
func ErrorName(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[runs.TryAgain](err); ok {
		return tryAgain
	}
	t := reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
