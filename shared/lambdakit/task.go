// Package lambdakit makes handlers of functions.
//
// A TaskFunc is what a state machine calls: JSON in, JSON or a named error out.
// The local engine calls it in process; behind Lambda it is the handler. Both
// name its errors with ErrorName, so that a Retry in the state machine means
// the same in both.
//
// It promises that a panic is an error of the call and not the end of the
// process, and that an input is checked before a use case sees it. It knows
// nothing of HTTP; see httpkit.
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

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// TaskFunc handles one call. Its input and output are JSON objects. It is safe
// for use by many goroutines.
type TaskFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// InvalidInput is the error of a call whose input is not what its function
// takes: a defect of the state machine, which no repetition mends.
type InvalidInput struct{ Cause error }

func (e InvalidInput) Error() string { return "the input is not valid: " + e.Cause.Error() }

// Unwrap gives the cause.
func (e InvalidInput) Unwrap() error { return e.Cause }

// Panicked is the error of a call that panicked.
type Panicked struct {
	Value string
	// Stack is for the log.
	Stack string
}

func (e Panicked) Error() string { return "the function panicked: " + e.Value }

// Task makes a TaskFunc of a function with typed input and output. Members of
// the input that In does not have are ignored: an execution in flight may carry
// what another version of this program knows.
//
// An error that is, or wraps, orchestrator.TryAgain is returned as TryAgain, so
// that its type is its name for the Lambda runtime too.
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
		if _, outermost := err.(orchestrator.TryAgain); !outermost && ErrorName(err) == tryAgain { //nolint:errorlint // the type that the runtime sees
			err = orchestrator.TryAgain{Cause: err}
		}
		if err != nil {
			return nil, err
		}
		if output, err = json.Marshal(out); err != nil {
			return nil, fmt.Errorf("cannot write the output: %w", err)
		}
		return output, nil
	}
}

// decode reads one JSON object and nothing behind it.
func decode[In any](input json.RawMessage) (In, error) {
	var in In
	if text := bytes.TrimSpace(input); len(text) == 0 || text[0] != '{' {
		return in, errors.New("it is no JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(input))
	if err := decoder.Decode(&in); err != nil {
		return in, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return in, errors.New("there is something behind the JSON object")
	}
	return in, nil
}

// tryAgain is the name by which the state machine retries.
const tryAgain = "TryAgain"

// ErrorName is the name that an error has in the state machine: "TryAgain" for
// whatever is or wraps orchestrator.TryAgain, and for any other its Go type, as
// the Lambda runtime names it. It is empty for nil.
func ErrorName(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[orchestrator.TryAgain](err); ok {
		return tryAgain
	}
	t := reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
