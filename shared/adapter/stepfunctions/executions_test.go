package stepfunctions_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	machine   = "arn:aws:states:eu-central-1:123456789012:stateMachine:sortie-run"
	execution = "arn:aws:states:eu-central-1:123456789012:execution:sortie-run:"
)

// service is Step Functions with scripted answers by operation.
type service struct {
	mu      sync.Mutex
	calls   []string
	inputs  map[string]map[string]string
	answers map[string][]any
}

// setup returns the adapter for a service with these responses by operation, in order. The last
// one is repeated.
func setup(t *testing.T, answers map[string][]any) (*service, *stepfunctions.Executions) {
	t.Helper()
	s := &service{inputs: map[string]map[string]string{}, answers: answers}
	calls := map[string]awstest.Call{}
	for operation := range answers {
		calls[operation] = func(input json.RawMessage) (any, error) { return s.answer(operation, input) }
	}
	executions, err := stepfunctions.New(awstest.Serve(t, calls), machine)
	if err != nil {
		t.Fatal(err)
	}
	return s, executions
}

func (s *service) answer(operation string, input json.RawMessage) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, operation)
	var fields map[string]string
	if err := json.Unmarshal(input, &fields); err != nil {
		return nil, err
	}
	s.inputs[operation] = fields
	answers := s.answers[operation]
	if len(answers) > 1 {
		s.answers[operation] = answers[1:]
	}
	if refusal, refused := answers[0].(awstest.Refusal); refused {
		return nil, refusal
	}
	return answers[0], nil
}

func refused(code string) awstest.Refusal { return awstest.Refusal{Code: code, Message: "because"} }

var (
	started = map[string]any{"executionArn": execution + "x", "startDate": 1.7e9}
	nothing = map[string]any{}
)

func described(more map[string]any) map[string]any {
	answer := map[string]any{
		"executionArn": execution + "x", "stateMachineArn": machine, "name": "x", "status": "RUNNING", "startDate": 1.7e9,
	}
	maps.Copy(answer, more)
	return answer
}

func TestStartRequest(t *testing.T) {
	t.Parallel()
	s, executions := setup(t, map[string][]any{"StartExecution": {started}})
	if err := executions.Start(t.Context(), "x", json.RawMessage(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"stateMachineArn": machine, "name": "x", "input": `{"a":1}`}
	if diff := cmp.Diff(want, s.inputs["StartExecution"]); diff != "" {
		t.Error(diff)
	}
}

// TestStartAfterTheEnd uses a service that reports, for any input, that the name exists.
// Rule 13 of shared/README.md.
func TestStartAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, input string
		describe    any
		ok          bool
	}{
		{"the same input", `{"a":1,"b":"x"}`, described(map[string]any{"input": `{"a":1,"b":"x"}`, "status": "SUCCEEDED"}), true},
		{"the same input formatted differently", `{"a":1,"b":"x"}`, described(map[string]any{"input": `{ "b": "\u0078", "a": 1 }`}), true},
		{"another input", `{"a":1}`, described(map[string]any{"input": `{"a":2}`}), false},
		{"numbers that differ in the last digit", `{"a":12345678901234567890}`, described(map[string]any{"input": `{"a":12345678901234567891}`}), false},
		{"input not included", `{}`, described(nil), false},
		{"execution not visible yet", `{}`, refused("ExecutionDoesNotExist"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, executions := setup(t, map[string][]any{
				"StartExecution": {refused("ExecutionAlreadyExists")}, "DescribeExecution": {row.describe},
			})
			err := executions.Start(t.Context(), "x", json.RawMessage(row.input))
			if (err == nil) != row.ok || errors.Is(err, port.ErrNotFound) {
				t.Errorf("got error %v", err)
			}
			if got := s.inputs["DescribeExecution"]["executionArn"]; got != execution+"x" {
				t.Errorf("got a description of %s", got)
			}
		})
	}
}

func TestInvalidInputIsRefusedWithoutACall(t *testing.T) {
	t.Parallel()
	s, executions := setup(t, nil)
	ctx := t.Context()
	for what, err := range map[string]error{
		"no name":          executions.Start(ctx, "", json.RawMessage(`{}`)),
		"a long name":      executions.Start(ctx, strings.Repeat("x", 81), json.RawMessage(`{}`)),
		"a name with dots": executions.Start(ctx, "a.b", json.RawMessage(`{}`)),
		"no input":         executions.Start(ctx, "x", nil),
		"a list":           executions.Start(ctx, "x", json.RawMessage(`[]`)),
		"no output":        executions.Succeed(ctx, "token", json.RawMessage(``)),
		"half an output":   executions.Succeed(ctx, "token", json.RawMessage(`{`)),
		"a reserved error": executions.Fail(ctx, "token", "States.Timeout", ""),
	} {
		if err == nil || errors.Is(err, port.ErrTokenGone) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if len(s.calls) > 0 {
		t.Errorf("got calls %v, want no call", s.calls)
	}
}

// TestTokenGone covers the three errors of the service for a token that is gone.
func TestTokenGone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answer any
		want   error
	}{
		{nothing, nil},
		{refused("TaskTimedOut"), port.ErrTokenGone},
		{refused("TaskDoesNotExist"), port.ErrTokenGone},
		{refused("InvalidToken"), port.ErrTokenGone},
	} {
		_, executions := setup(t, map[string][]any{
			"SendTaskSuccess": {row.answer}, "SendTaskFailure": {row.answer}, "SendTaskHeartbeat": {row.answer},
		})
		for call, err := range aboutTheToken(t.Context(), executions) {
			if !errors.Is(err, row.want) {
				t.Errorf("%s with %v: got %v", call, row.answer, err)
			}
		}
	}
}

func aboutTheToken(ctx context.Context, e *stepfunctions.Executions) map[string]error {
	return map[string]error{
		"Succeed": e.Succeed(ctx, "token", json.RawMessage(`{}`)), "Fail": e.Fail(ctx, "token", "Boom", "x"), "Heartbeat": e.Heartbeat(ctx, "token"),
	}
}

func TestUnknownExecution(t *testing.T) {
	t.Parallel()
	_, executions := setup(t, map[string][]any{
		"StopExecution": {refused("ExecutionDoesNotExist")}, "DescribeExecution": {refused("ExecutionDoesNotExist")},
	})
	if err := executions.Stop(t.Context(), "x", "because"); err != nil {
		t.Errorf("Stop: got %v", err)
	}
	if _, err := executions.Describe(t.Context(), "x"); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("Describe: got %v", err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answer map[string]any
		want   port.Execution
	}{
		{described(nil), port.Execution{Name: "x", Status: port.ExecutionRunning}},
		{
			described(map[string]any{"status": "FAILED", "error": "Boom", "cause": "it broke"}),
			port.Execution{Name: "x", Status: port.ExecutionFailed, Error: "Boom", Cause: "it broke"},
		},
		{described(map[string]any{"status": "TIMED_OUT"}), port.Execution{Name: "x", Status: port.ExecutionTimedOut}},
		{described(map[string]any{"status": "PENDING_REDRIVE"}), port.Execution{Name: "x", Status: port.ExecutionRunning}},
	} {
		_, executions := setup(t, map[string][]any{"DescribeExecution": {row.answer}})
		got, err := executions.Describe(t.Context(), "x")
		if diff := cmp.Diff(row.want, got); diff != "" || err != nil {
			t.Errorf("%v: %v\n%s", row.answer["status"], err, diff)
		}
	}
}

// TestOutagesAreUnavailable checks that every call returns the same fault. Only its log text
// has the service's message.
func TestOutagesAreUnavailable(t *testing.T) {
	t.Parallel()
	down := awstest.Refusal{Code: "AccessDeniedException", Message: "secret words"}
	answers := map[string][]any{}
	for _, operation := range []string{"StartExecution", "SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat", "StopExecution", "DescribeExecution"} {
		answers[operation] = []any{down}
	}
	_, executions := setup(t, answers)
	failures := aboutTheToken(t.Context(), executions)
	failures["Start"] = executions.Start(t.Context(), "x", json.RawMessage(`{}`))
	failures["Stop"] = executions.Stop(t.Context(), "x", "because")
	_, failures["Describe"] = executions.Describe(t.Context(), "x")
	for call, err := range failures {
		if !fault.Is(err, fault.Unavailable) || strings.Contains(fault.Of(err).Message, "secret") || !strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", call, err)
		}
	}
}

// TestThrottlingIsRetriedWithALimit also checks that a heartbeat is tried once, because
// a worker's request waits for it.
func TestThrottlingIsRetriedWithALimit(t *testing.T) {
	t.Parallel()
	slow := awstest.Refusal{Code: "ThrottlingException", Message: "Rate exceeded"}
	s, executions := setup(t, map[string][]any{
		"SendTaskSuccess":   {slow, slow, slow, slow, slow, nothing},
		"SendTaskFailure":   {slow},
		"SendTaskHeartbeat": {slow},
	})
	if err := executions.Succeed(t.Context(), "token", json.RawMessage(`{}`)); err != nil {
		t.Errorf("after six tries: got %v", err)
	}
	s.calls = nil
	if err := executions.Fail(t.Context(), "token", "E", ""); !fault.Is(err, fault.Unavailable) || len(s.calls) != 8 {
		t.Errorf("completion: got %v after %d tries, want %s after 8", err, len(s.calls), fault.Unavailable)
	}
	s.calls = nil
	if err := executions.Heartbeat(t.Context(), "token"); !fault.Is(err, fault.Unavailable) || len(s.calls) != 1 {
		t.Errorf("heartbeat: got %v after %d tries, want %s after 1", err, len(s.calls), fault.Unavailable)
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, executions := setup(t, map[string][]any{"StopExecution": {nothing}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := executions.Stop(ctx, "x", "because"); !errors.Is(err, context.Canceled) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("got error %v", err)
	}
}

func TestStateMachinesAreNamedByARN(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "sortie-run", execution + "x", "arn:aws:states:r:a:stateMachine", "arn:aws:states:r:a:stateMachine:", "arn:aws:lambda:r:a:function:x"} {
		if _, err := stepfunctions.New(awstest.Serve(t, nil), bad); err == nil {
			t.Errorf("%q: got success", bad)
		}
	}
	var asked map[string]string
	cfg := awstest.Serve(t, map[string]awstest.Call{"DescribeExecution": func(input json.RawMessage) (any, error) {
		return described(nil), json.Unmarshal(input, &asked)
	}})
	executions, err := stepfunctions.New(cfg, machine+":live")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := executions.Describe(t.Context(), "x"); err != nil || asked["executionArn"] != execution+"x" {
		t.Errorf("with an alias: got a call for %s (%v)", asked["executionArn"], err)
	}
}
