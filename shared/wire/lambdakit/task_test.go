package lambdakit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

type greeting struct {
	Name string `json:"name"`
}

func greet(f func(greeting) (greeting, error)) lambdakit.TaskFunc {
	return lambdakit.Task(func(_ context.Context, in greeting) (greeting, error) { return f(in) })
}

func TestTaskReadsAndWritesJSON(t *testing.T) {
	t.Parallel()
	task := greet(func(in greeting) (greeting, error) { return greeting{"hello " + in.Name}, nil })
	got, err := task(context.Background(), json.RawMessage(` {"name":"you","unknown":1} `))
	if err != nil || string(got) != `{"name":"hello you"}` {
		t.Errorf("got output %s (%v)", got, err)
	}
}

func TestErrorsHaveNames(t *testing.T) {
	t.Parallel()
	again := runs.TryAgain{Cause: errors.New("busy")}
	for _, row := range []struct {
		name  string
		input string
		err   error
		want  string
	}{
		{"try again", `{}`, again, "TryAgain"},
		{"wrapped try again", `{}`, fmt.Errorf("cannot keep: %w", again), "TryAgain"},
		{"joined try again", `{}`, errors.Join(errors.New("x"), again), "TryAgain"},
		{"a fault", `{}`, fault.New(fault.Internal, "x"), "Fault"},
		{"a plain error", `{}`, errors.New("x"), "errorString"},
		{"an illegal transition", `{}`, run.IllegalTransition{From: run.Pending, To: run.PreRun}, "IllegalTransition"},
		{"no JSON", `{`, nil, "InvalidInput"},
		{"no object", `[]`, nil, "InvalidInput"},
		{"null", `null`, nil, "InvalidInput"},
		{"nothing", ``, nil, "InvalidInput"},
		{"two objects", `{}{}`, nil, "InvalidInput"},
		{"a wrong type", `{"name":1}`, nil, "InvalidInput"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			output, err := greet(func(greeting) (greeting, error) { return greeting{}, row.err })(context.Background(), json.RawMessage(row.input))
			if name := lambdakit.ErrorName(err); name != row.want || output != nil {
				t.Errorf("%v: got name %q, want %q; output %s", err, name, row.want, output)
			}
			if row.err != nil && !errors.Is(err, row.err) && err.Error() != row.err.Error() {
				t.Errorf("got error %v, want %v", err, row.err)
			}
			// The Lambda runtime uses the outermost type.
			if _, outermost := err.(runs.TryAgain); row.want == "TryAgain" && !outermost { //nolint:errorlint // that is the point
				t.Errorf("got outermost type %T, want TryAgain", err)
			}
		})
	}
	if name := lambdakit.ErrorName(nil); name != "" {
		t.Errorf("nil: got name %q, want none", name)
	}
}

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	task := greet(func(greeting) (greeting, error) { panic("out of ideas") })
	_, err := task(context.Background(), json.RawMessage(`{}`))
	panicked, ok := errors.AsType[lambdakit.Panicked](err)
	if !ok || !strings.Contains(err.Error(), "out of ideas") || !strings.Contains(panicked.Stack, "greet") {
		t.Errorf("got error %v, want Panicked", err)
	}
}

func TestStepsCallTheStepsUseCase(t *testing.T) {
	t.Parallel()
	task := lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepPending: lambdakit.Routing(func(_ context.Context, in runs.StepInput) (run.Route, error) {
			return run.Route{Ref: in.Ref, Next: run.StepQueued}, nil
		}),
		run.StepQueued: lambdakit.Waiting(func(_ context.Context, in runs.StepInput) error {
			if in.Token != "t" || in.Generation != 2 {
				return fmt.Errorf("got token %q of generation %d", in.Token, in.Generation)
			}
			return nil
		}),
		run.StepReconciling: lambdakit.Routing(func(_ context.Context, in runs.StepInput) (run.Route, error) {
			return run.Route{Next: run.Step(in.Carried.Error.Error)}, nil
		}),
	})
	for _, row := range []struct{ name, input, output, failure string }{
		{
			"a plain state", `{"tenant":"a","runId":"r","step":"Pending","execution":"e"}`,
			`"next":"Queued"`, "",
		},
		{
			"a token state", `{"tenant":"a","runId":"r","step":"Queued","execution":"e","generation":2,"token":"t"}`,
			`{}`, "",
		},
		{
			"a carried document", `{"tenant":"a","runId":"r","step":"Judging","execution":"e","carried":{"tenant":"a","seconds":1,"error":{"Error":"States.Timeout","Cause":""}}}`,
			`"next":"States.Timeout"`, "",
		},
		{"a token state without a token", `{"tenant":"a","runId":"r","step":"Queued","execution":"e"}`, "", "InvalidInput"},
		{"an unknown step", `{"tenant":"a","runId":"r","step":"Running","execution":"e"}`, "", "InvalidInput"},
		{"no step", `{"tenant":"a","runId":"r","execution":"e"}`, "", "InvalidInput"},
		{"no run", `{"tenant":"a","step":"Pending","execution":"e"}`, "", "InvalidInput"},
		{"no execution", `{"tenant":"a","runId":"r","step":"Pending"}`, "", "InvalidInput"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			output, err := task(context.Background(), json.RawMessage(row.input))
			if lambdakit.ErrorName(err) != row.failure || !strings.Contains(string(output), row.output) {
				t.Errorf("got output %s, error %v; want %q or %q", output, err, row.output, row.failure)
			}
		})
	}
}
