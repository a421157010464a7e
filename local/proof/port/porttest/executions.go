package porttest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// ExecutionsMachine is the state machine that the suite of Executions runs. Its only function
// receives the name of the execution and a token. The output for the token decides how the
// execution ends.
const ExecutionsMachine = `{"StartAt": "Ask", "States": {
	"Ask": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
		"Parameters": {"FunctionName": "Ask", "Payload": {"execution.$": "$$.Execution.Name", "token.$": "$$.Task.Token"}},
		"HeartbeatSeconds": 20, "TimeoutSeconds": 60, "Next": "Which"},
	"Which": {"Type": "Choice", "Choices": [{"Variable": "$.end", "StringEquals": "good", "Next": "Good"}], "Default": "Bad"},
	"Good": {"Type": "Succeed"},
	"Bad": {"Type": "Fail", "Error": "Bad", "Cause": "the output said so"}}}`

// The outputs for the token, by the end of the execution.
const (
	goodEnd = `{"end": "good"}`
	badEnd  = `{"end": "bad"}`
)

// ExecutionsHarness is an adapter whose executions run ExecutionsMachine.
type ExecutionsHarness struct {
	Executions port.Executions
	// Pass advances the clock of the executions.
	Pass func(d time.Duration)
	// Reopen returns the adapter as it is after a restart of its process. The caller does not
	// use the previous adapter again.
	Reopen func() port.Executions
}

// Executions is the conformance suite of port.Executions. open returns an adapter without
// executions. The function of the state machine must call ask, which does not block, with the
// name and token of the execution.
func Executions(t *testing.T, open func(t *testing.T, ask func(execution, token string)) ExecutionsHarness) {
	for name, test := range map[string]func(*executionsTest){
		"start is idempotent":                         startAgain,
		"same name with another input":                startOther,
		"invalid name or input":                       startInvalid,
		"token completes once":                        tokenOnce,
		"output reaches the next state":               outputPassedOn,
		"failure":                                     failure,
		"invalid output keeps the token":              outputInvalid,
		"unknown token":                               tokenUnknown,
		"tokens are per execution":                    tokensPerExecution,
		"heartbeat extends the heartbeat timeout":     heartbeats,
		"heartbeat survives a restart":                heartbeatReopened,
		"heartbeat timeout":                           heartbeatTimeout,
		"heartbeat does not extend the state timeout": timeout,
		"token works before its call returns":         tokenEarly,
		"stop":                                        stopped,
		"stop of a finished execution":                stoppedLate,
		"unknown execution":                           executionUnknown,
		"one of many concurrent completions wins":     completeRace,
		"concurrent starts start once":                startRace,
		"concurrent stop and completion":              stopRace,
		"executions survive a restart":                reopened,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &executionsTest{T: t, ctx: t.Context(), tokens: map[string][]string{}, signal: make(chan struct{}, 1)}
			e.h = open(t, e.ask)
			e.port = e.h.Executions
			test(e)
		})
	}
}

// executionsTest has the adapter of one test and the tokens that its function has received.
type executionsTest struct {
	*testing.T
	ctx  context.Context
	h    ExecutionsHarness
	port port.Executions

	mu     sync.Mutex
	tokens map[string][]string
	signal chan struct{}
	// onToken, if not nil, is called with a token before the function returns.
	onToken func(token string)
}

func (e *executionsTest) ask(execution, token string) {
	e.mu.Lock()
	e.tokens[execution] = append(e.tokens[execution], token)
	onToken := e.onToken
	e.mu.Unlock()
	if onToken != nil {
		onToken(token)
	}
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// tokenCount returns the number of tokens that the function has received for the execution.
func (e *executionsTest) tokenCount(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tokens[name])
}

// token waits for the token of the execution and returns it.
func (e *executionsTest) token(name string) string {
	e.Helper()
	for {
		e.mu.Lock()
		tokens := e.tokens[name]
		e.mu.Unlock()
		if len(tokens) > 0 {
			return tokens[0]
		}
		select {
		case <-e.signal:
		case <-e.ctx.Done():
			e.Fatalf("execution %s: got no token", name)
		}
	}
}

func (e *executionsTest) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// gone checks that every call with the token returns ErrTokenGone.
func (e *executionsTest) gone(token string) {
	e.Helper()
	for call, err := range map[string]error{
		"Succeed":   e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)),
		"Fail":      e.port.Fail(e.ctx, token, "Boom", "no reason"),
		"Heartbeat": e.port.Heartbeat(e.ctx, token),
	} {
		if !errors.Is(err, port.ErrTokenGone) {
			e.Errorf("%s with a completed token: got %v, want ErrTokenGone", call, err)
		}
	}
}

// start starts an execution and waits for its token.
func (e *executionsTest) start(name string) (token string) {
	e.Helper()
	e.ok(e.port.Start(e.ctx, name, json.RawMessage(`{}`)))
	return e.token(name)
}

func (e *executionsTest) describe(name string) port.Execution {
	e.Helper()
	x, err := e.port.Describe(e.ctx, name)
	e.ok(err)
	if x.Name != name {
		e.Errorf("execution %s: got %q in its description", name, x.Name)
	}
	return x
}

// end waits until the execution ends and returns its description.
func (e *executionsTest) end(name string) port.Execution {
	e.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		x := e.describe(name)
		if x.Status != port.ExecutionRunning {
			return x
		}
		select {
		case <-look.C:
		case <-e.ctx.Done():
			e.Fatalf("execution %s did not end in time", name)
		}
	}
}

// ends waits until the execution ends and checks how it ended.
func (e *executionsTest) ends(name string, want port.ExecutionStatus, code, cause string) {
	e.Helper()
	x := e.end(name)
	if x.Status != want || x.Error != code || cause != "" && x.Cause != cause {
		e.Errorf("execution %s: got %s with %q, %q; want %s with %q, %q", name, x.Status, x.Error, x.Cause, want, code, cause)
	}
}

// timesOut waits until the execution ends, which must be because a state exceeded a timeout.
func (e *executionsTest) timesOut(name string) {
	e.Helper()
	x := e.end(name)
	if x.Status != port.ExecutionFailed || x.Error != "States.Timeout" && x.Error != "States.HeartbeatTimeout" {
		e.Errorf("execution %s: got %s with %q, %q; want a timeout", name, x.Status, x.Error, x.Cause)
	}
}

func (e *executionsTest) runs(name string) {
	e.Helper()
	if x := e.describe(name); x.Status != port.ExecutionRunning || x.Error != "" {
		e.Errorf("execution %s: got %s with %q, want running", name, x.Status, x.Error)
	}
}

func executionUnknown(e *executionsTest) {
	if x, err := e.port.Describe(e.ctx, "never-was"); !errors.Is(err, port.ErrNotFound) {
		e.Errorf("Describe: got %+v, %v; want ErrNotFound", x, err)
	}
	e.ok(e.port.Stop(e.ctx, "never-was", "just so"))
	e.ok(e.port.Start(e.ctx, "never-was", json.RawMessage(`{}`)))
	e.token("never-was")
	e.runs("never-was")
}

func startInvalid(e *executionsTest) {
	for _, name := range []string{"", "a b", "a.b", "a/b", "ä", strings.Repeat("x", 81)} {
		if err := e.port.Start(e.ctx, name, json.RawMessage(`{}`)); err == nil {
			e.Errorf("Start with name %q: got success", name)
		}
	}
	for _, input := range []string{``, `{`, `[]`, `"text"`, `null`} {
		if err := e.port.Start(e.ctx, "input", json.RawMessage(input)); err == nil {
			e.Errorf("Start with input %q: got success", input)
		}
	}
	if _, err := e.port.Describe(e.ctx, "input"); !errors.Is(err, port.ErrNotFound) {
		e.Errorf("Describe: got %v, want ErrNotFound", err)
	}
	e.start("A-name_of-1")
	e.start(strings.Repeat("x", 80))
}
