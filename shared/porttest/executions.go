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

// ExecutionsMachine is the state machine that the suite of Executions runs. Its
// one function gets the execution's name and a token; with the token's output
// it ends as that says.
const ExecutionsMachine = `{"StartAt": "Ask", "States": {
	"Ask": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
		"Parameters": {"FunctionName": "Ask", "Payload": {"execution.$": "$$.Execution.Name", "token.$": "$$.Task.Token"}},
		"HeartbeatSeconds": 20, "TimeoutSeconds": 60, "Next": "Which"},
	"Which": {"Type": "Choice", "Choices": [{"Variable": "$.end", "StringEquals": "good", "Next": "Good"}], "Default": "Bad"},
	"Good": {"Type": "Succeed"},
	"Bad": {"Type": "Fail", "Error": "Bad", "Cause": "the output said so"}}}`

// Outputs of the token, by how the execution then ends.
const (
	goodEnd = `{"end": "good"}`
	badEnd  = `{"end": "bad"}`
)

// ExecutionsHarness is an adapter whose executions run ExecutionsMachine.
type ExecutionsHarness struct {
	Executions port.Executions
	// Pass lets a time pass for the executions.
	Pass func(d time.Duration)
	// Reopen gives the adapter as another process would have it, after the end
	// of this one. What this one was is not used any more.
	Reopen func() port.Executions
}

// Executions is the conformance suite of port.Executions. open makes an
// adapter without executions; ask is what the machine's function does with an
// execution's name and token, and returns soon.
func Executions(t *testing.T, open func(t *testing.T, ask func(execution, token string)) ExecutionsHarness) {
	for name, test := range map[string]func(*executionsTest){
		"StartingAgainIsStartingOnce":        startAgain,
		"AnotherInputIsRefused":              startOther,
		"WhatIsNoNameOrInputIsRefused":       startNonsense,
		"ATokenIsCompletedOnce":              tokenOnce,
		"TheOutputGoesOn":                    outputGoesOn,
		"AFailureIsTold":                     failureIsTold,
		"WhatIsNoOutputLeavesTheToken":       outputNonsense,
		"AnUnknownTokenIsGone":               tokenUnknown,
		"ATokenIsItsOwnExecutionsAlone":      tokensAreApart,
		"AHeartbeatStartsTheClockAnew":       heartbeats,
		"AHeartbeatCountsAfterwards":         heartbeatReopened,
		"ASilentStateTimesOut":               heartbeatTimeout,
		"NoHeartbeatExtendsTheTimeout":       timeout,
		"ATokenIsGoodBeforeItsCallReturns":   tokenEarly,
		"AStoppedExecutionIsLeft":            stopped,
		"StoppingWhatHasEndedChangesNothing": stoppedLate,
		"WhatNeverWasIsNotFound":             neverWas,
		"OneOfManyCompletersWins":            completeRace,
		"ManyStartersStartOnce":              startRace,
		"AStopAndACompletionAgree":           stopRace,
		"WhatWasAnsweredIsThereAfterwards":   reopened,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &executionsTest{T: t, ctx: t.Context(), tokens: map[string][]string{}, told: make(chan struct{}, 1)}
			e.h = open(t, e.ask)
			e.port = e.h.Executions
			test(e)
		})
	}
}

// executionsTest is one test's adapter and the tokens that its function got.
type executionsTest struct {
	*testing.T
	ctx  context.Context
	h    ExecutionsHarness
	port port.Executions

	mu     sync.Mutex
	tokens map[string][]string
	told   chan struct{}
	// early is done with a token before the function returns.
	early func(token string)
}

func (e *executionsTest) ask(execution, token string) {
	e.mu.Lock()
	e.tokens[execution] = append(e.tokens[execution], token)
	early := e.early
	e.mu.Unlock()
	if early != nil {
		early(token)
	}
	select {
	case e.told <- struct{}{}:
	default:
	}
}

// asked counts the tokens that the function got for the execution.
func (e *executionsTest) asked(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tokens[name])
}

// token waits for the execution's token.
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
		case <-e.told:
		case <-e.ctx.Done():
			e.Fatalf("the execution %s never got to its token", name)
		}
	}
}

func (e *executionsTest) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// gone holds every call about the token to be answered by ErrTokenGone.
func (e *executionsTest) gone(token string) {
	e.Helper()
	for call, err := range map[string]error{
		"Succeed":   e.port.Succeed(e.ctx, token, json.RawMessage(goodEnd)),
		"Fail":      e.port.Fail(e.ctx, token, "Boom", "no reason"),
		"Heartbeat": e.port.Heartbeat(e.ctx, token),
	} {
		if !errors.Is(err, port.ErrTokenGone) {
			e.Errorf("%s of a token that is gone: %v", call, err)
		}
	}
}

// start begins an execution and waits for its token.
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
		e.Errorf("%s is described as %q", name, x.Name)
	}
	return x
}

// end waits for the execution's end.
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
			e.Fatalf("the execution %s never ended", name)
		}
	}
}

// ends waits for the execution's end and holds it to what is wanted.
func (e *executionsTest) ends(name string, want port.ExecutionStatus, code, cause string) {
	e.Helper()
	x := e.end(name)
	if x.Status != want || x.Error != code || cause != "" && x.Cause != cause {
		e.Errorf("the execution %s is %s with %q, %q; want %s with %q, %q", name, x.Status, x.Error, x.Cause, want, code, cause)
	}
}

// timesOut waits for the end of an execution whose state took too long.
func (e *executionsTest) timesOut(name string) {
	e.Helper()
	x := e.end(name)
	if x.Status != port.ExecutionFailed || x.Error != "States.Timeout" && x.Error != "States.HeartbeatTimeout" {
		e.Errorf("the execution %s is %s with %q, %q; want a timeout", name, x.Status, x.Error, x.Cause)
	}
}

func (e *executionsTest) runs(name string) {
	e.Helper()
	if x := e.describe(name); x.Status != port.ExecutionRunning || x.Error != "" {
		e.Errorf("the execution %s is %s with %q", name, x.Status, x.Error)
	}
}

func neverWas(e *executionsTest) {
	if x, err := e.port.Describe(e.ctx, "never-was"); !errors.Is(err, port.ErrNotFound) {
		e.Errorf("Describe: %+v, %v", x, err)
	}
	e.ok(e.port.Stop(e.ctx, "never-was", "just so"))
	e.ok(e.port.Start(e.ctx, "never-was", json.RawMessage(`{}`)))
	e.token("never-was")
	e.runs("never-was")
}

func startNonsense(e *executionsTest) {
	for _, name := range []string{"", "a b", "a.b", "a/b", "ä", strings.Repeat("x", 81)} {
		if err := e.port.Start(e.ctx, name, json.RawMessage(`{}`)); err == nil {
			e.Errorf("an execution called %q has started", name)
		}
	}
	for _, input := range []string{``, `{`, `[]`, `"text"`, `null`} {
		if err := e.port.Start(e.ctx, "input", json.RawMessage(input)); err == nil {
			e.Errorf("an execution has started with %q", input)
		}
	}
	if _, err := e.port.Describe(e.ctx, "input"); !errors.Is(err, port.ErrNotFound) {
		e.Errorf("Describe: %v", err)
	}
	e.start("A-name_of-1")
	e.start(strings.Repeat("x", 80))
}
