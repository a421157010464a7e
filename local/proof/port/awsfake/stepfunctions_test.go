package awsfake_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// statesTest is a test with a service that runs the suite's state machine on the local engine.
type statesTest struct {
	*testing.T
	*sfn.Client
	clock  *clock.Virtual
	engine *engine.Engine
	// token is the newest token that the function of the state machine has received.
	token string
}

func setupStates(t *testing.T, c awsfake.StepFunctionsConfig) *statesTest {
	t.Helper()
	s := &statesTest{T: t, clock: clock.NewVirtual(epoch)}
	var err error
	s.engine, err = engine.New(t.Context(), engine.Config{
		Clock: s.clock, Name: "run", Definition: []byte(porttest.ExecutionsMachine),
		Invoke: func(_ context.Context, _ string, payload json.RawMessage) (json.RawMessage, error) {
			var in struct{ Token string }
			err := json.Unmarshal(payload, &in)
			s.token = in.Token
			return json.RawMessage(`{}`), err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Clock, c.Executions = s.clock, s.engine
	states, err := awsfake.NewStepFunctions(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Client = sfn.NewFromConfig(states.AWS(), func(o *sfn.Options) { o.Retryer = aws.NopRetryer{} })
	return s
}

// start starts an execution and returns the error code.
func (s *statesTest) start(machine, name, input string) string {
	s.Helper()
	_, err := s.StartExecution(s.Context(), &sfn.StartExecutionInput{StateMachineArn: &machine, Name: &name, Input: &input})
	if _, failed := s.engine.Step(s.Context()); failed != nil {
		s.Fatal(failed)
	}
	return code(err)
}

func (s *statesTest) succeed(token, output string) string {
	s.Helper()
	_, err := s.SendTaskSuccess(s.Context(), &sfn.SendTaskSuccessInput{TaskToken: &token, Output: &output})
	if _, failed := s.engine.Step(s.Context()); failed != nil {
		s.Fatal(failed)
	}
	return code(err)
}

func TestExecutionNames(t *testing.T) {
	t.Parallel()
	s := setupStates(t, awsfake.StepFunctionsConfig{})
	for _, step := range []struct{ what, machine, name, input, want string }{
		{"first start", awsfake.StateMachine, "x", `{"a":1}`, ""},
		{"same input while it runs", awsfake.StateMachine, "x", `{"a":1}`, ""},
		{"by an alias", awsfake.StateMachine + ":live", "y", `{}`, ""},
		{"another input while it runs", awsfake.StateMachine, "x", `{"a":2}`, "ExecutionAlreadyExists"},
		{"another machine", awsfake.StateMachine + "2", "z", `{}`, "StateMachineDoesNotExist"},
		{"invalid name", awsfake.StateMachine, "a b", `{}`, "InvalidName"},
		{"invalid input", awsfake.StateMachine, "z", `{`, "InvalidExecutionInput"},
		{"large input", awsfake.StateMachine, "z", `"` + strings.Repeat("x", 256<<10) + `"`, malformed},
	} {
		if got := s.start(step.machine, step.name, step.input); got != step.want {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
	s.start(awsfake.StateMachine, "ends", `{}`)
	if got := s.succeed(s.token, `{"end": "good"}`); got != "" {
		t.Fatal(got)
	}
	if got := s.start(awsfake.StateMachine, "ends", `{}`); got != "ExecutionAlreadyExists" {
		t.Errorf("the same input after the end: got %q, want ExecutionAlreadyExists", got)
	}
	s.clock.Advance(90*24*time.Hour + time.Second)
	if got := s.start(awsfake.StateMachine, "ends", `{"a":2}`); got != "" {
		t.Errorf("after 90 days: got %q, want a free name", got)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := setupStates(t, awsfake.StepFunctionsConfig{})
	s.start(awsfake.StateMachine, "x", `{}`)
	gone := "TaskTimedOut TaskDoesNotExist InvalidToken"
	for _, step := range []struct{ what, token, output, want string }{
		{"unknown token", "unknown", `{}`, gone},
		{"long token", strings.Repeat("x", 2049), `{}`, malformed},
		{"invalid output", s.token, `{`, "InvalidOutput"},
		{"large output", s.token, `"` + strings.Repeat("x", 256<<10) + `"`, "InvalidOutput"},
		{"first completion", s.token, `{"end": "good"}`, ""},
		{"second completion", s.token, `{"end": "good"}`, gone},
	} {
		if got := s.succeed(step.token, step.output); got != step.want && (step.want != gone || !strings.Contains(gone, got) || got == "") {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
	// A token expires with its state.
	s.start(awsfake.StateMachine, "y", `{}`)
	s.clock.Advance(time.Minute)
	if _, err := s.engine.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.succeed(s.token, `{"end": "good"}`); got == "" || !strings.Contains(gone, got) {
		t.Errorf("expired token: got %q, want one of %s", got, gone)
	}
}

func TestDescriptionsLag(t *testing.T) {
	t.Parallel()
	s := setupStates(t, awsfake.StepFunctionsConfig{Stale: 1, Lag: time.Second})
	describe := func() string {
		t.Helper()
		arn := strings.Replace(awsfake.StateMachine, "stateMachine", "execution", 1) + ":x"
		x, err := s.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &arn})
		if err != nil {
			return code(err)
		}
		return string(x.Status)
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { s.start(awsfake.StateMachine, "x", `{}`) }, "ExecutionDoesNotExist"},
		{func() { s.clock.Advance(time.Second) }, "RUNNING"},
		{func() { s.succeed(s.token, `{"end": "bad"}`) }, "RUNNING"},
		{func() { s.clock.Advance(time.Second) }, "FAILED"},
	} {
		step.do()
		if got := describe(); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
}
