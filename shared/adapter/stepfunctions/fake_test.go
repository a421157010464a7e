package stepfunctions_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// account is Step Functions with the suite's machine, on the local engine.
type account struct {
	*awsfake.StepFunctions
	*testing.T
	engine *engine.Engine
	clock  *clock.Virtual

	stepping sync.Mutex
	again    atomic.Bool
}

// newAccount returns a service whose machine's function calls ask.
func newAccount(t *testing.T, c awsfake.StepFunctionsConfig, ask func(execution, token string)) *account {
	t.Helper()
	a := &account{T: t, clock: clock.NewVirtual(epoch)}
	var err error
	a.engine, err = engine.New(t.Context(), engine.Config{
		Clock: a.clock, Name: "run", Definition: []byte(porttest.ExecutionsMachine),
		Entered: func(execution, state string) { a.Entered(execution, state) },
		Invoke: func(_ context.Context, _ string, payload json.RawMessage) (json.RawMessage, error) {
			var in struct{ Execution, Token string }
			if err := json.Unmarshal(payload, &in); err != nil {
				return nil, err
			}
			ask(in.Execution, in.Token)
			return json.RawMessage(`{}`), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Clock == nil {
		c.Clock = leaping{a}
	}
	c.Executions, c.Definition = a.engine, []byte(porttest.ExecutionsMachine)
	if a.StepFunctions, err = awsfake.NewStepFunctions(c); err != nil {
		t.Fatal(err)
	}
	return a
}

// step executes everything that is due. If it is called during a step, such as by the machine's
// function, the running step executes it.
func (a *account) step() {
	a.again.Store(true)
	for a.again.Load() && a.stepping.TryLock() {
		for a.again.Swap(false) {
			if worked, err := a.engine.Step(context.Background()); err != nil {
				a.Error(err)
			} else if worked {
				a.again.Store(true)
			}
		}
		a.stepping.Unlock()
	}
}

// pass advances the clock from deadline to deadline.
func (a *account) pass(d time.Duration) {
	until := a.clock.Now().Add(d)
	for {
		next, ok := a.engine.NextDue()
		if !ok || next.After(until) {
			break
		}
		a.clock.Advance(max(next.Sub(a.clock.Now()), 0))
		a.step()
	}
	a.clock.Advance(until.Sub(a.clock.Now()))
}

// leaping is the account's clock for the SDK, in which a pause ends at once.
type leaping struct{ *account }

// Now implements clock.Clock.
func (l leaping) Now() time.Time { return l.clock.Now() }

// NewTimer implements clock.Clock.
func (l leaping) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	l.clock.Advance(d)
	return l.clock.NewTimer(0)
}

// client returns the adapter.
func (a *account) client() *stepfunctions.Executions {
	a.Helper()
	executions, err := stepfunctions.New(a.AWS(), awsfake.StateMachine)
	if err != nil {
		a.Fatal(err)
	}
	return executions
}

// stepped advances the service after each call.
type stepped struct {
	port.Executions
	account *account
}

// Start implements port.Executions.
func (s stepped) Start(ctx context.Context, name string, input json.RawMessage) error {
	defer s.account.step()
	return s.Executions.Start(ctx, name, input)
}

// Succeed implements port.Executions.
func (s stepped) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	defer s.account.step()
	return s.Executions.Succeed(ctx, token, output)
}

// Fail implements port.Executions.
func (s stepped) Fail(ctx context.Context, token, name, cause string) error {
	defer s.account.step()
	return s.Executions.Fail(ctx, token, name, cause)
}

// TestExecutions runs the suite without faults. The service stores the executions, so a restart
// is a new client.
func TestExecutions(t *testing.T) {
	t.Parallel()
	porttest.Executions(t, func(t *testing.T, ask func(execution, token string)) porttest.ExecutionsHarness {
		t.Helper()
		a := newAccount(t, awsfake.StepFunctionsConfig{Quotas: awsfake.Quotas()}, ask)
		open := func() port.Executions { return stepped{a.client(), a} }
		return porttest.ExecutionsHarness{Executions: open(), Reopen: open, Pass: a.pass}
	})
}

// TestExecutionsWithFaults starts and completes a hundred executions on a service that loses
// and throttles calls. A caller that repeats its call has started and completed each once.
func TestExecutionsWithFaults(t *testing.T) {
	t.Parallel()
	tokens := map[string]string{}
	a := newAccount(t, awsfake.StepFunctionsConfig{
		Seed: 3, Stale: 0.5, Lag: time.Second, Plan: awsfake.Seeded(3, 0.3, awsfake.Lost, awsfake.Unsure, awsfake.Throttled),
	}, func(execution, token string) {
		if tokens[execution] != "" {
			t.Errorf("execution %s: got two tokens, want one", execution)
		}
		tokens[execution] = token
	})
	executions := stepped{a.client(), a}
	repeat := func(what string, call func() error, enough error) {
		t.Helper()
		for range 100 {
			err := call()
			if err == nil || errors.Is(err, enough) {
				return
			}
			if !fault.Is(err, fault.Unavailable) && !errors.Is(err, port.ErrNotFound) {
				t.Fatalf("%s: got %v, want Unavailable", what, err)
			}
			a.pass(100 * time.Millisecond)
		}
		t.Fatalf("%s: got no success in 100 tries", what)
	}
	late := fault.New(fault.Unavailable, "the description lags")
	for i := range 100 {
		name := strings.Repeat("x", i%80+1) // twenty names occur twice
		repeat("start", func() error { return executions.Start(t.Context(), name, json.RawMessage(`{}`)) }, nil)
		repeat("succeed", func() error {
			return executions.Succeed(t.Context(), tokens[name], json.RawMessage(`{"end": "good"}`))
		}, port.ErrTokenGone)
		repeat("describe", func() error {
			x, err := executions.Describe(t.Context(), name)
			if err == nil && x.Status == port.ExecutionRunning {
				return late
			}
			if err == nil && x.Status != port.ExecutionSucceeded {
				t.Errorf("execution %s: got %+v, want SUCCEEDED", name, x)
			}
			return err
		}, nil)
	}
	if len(tokens) != 80 {
		t.Errorf("got %d executions, want 80", len(tokens))
	}
}

// TestQuotaDelaysCalls makes more calls at once than their buckets have: the
// SDK's pauses let a bucket refill, and a heartbeat is not repeated.
func TestQuotaDelaysCalls(t *testing.T) {
	t.Parallel()
	var token string
	quota := awsfake.Quota{Bucket: 10, Refill: 5}
	a := newAccount(t, awsfake.StepFunctionsConfig{
		Quotas: map[string]awsfake.Quota{"SendTaskHeartbeat": quota, "DescribeExecution": quota},
	}, func(_, t string) { token = t })
	executions := stepped{a.client(), a}
	if err := executions.Start(t.Context(), "x", json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 30 {
		if err := executions.Heartbeat(t.Context(), token); fault.Is(err, fault.Unavailable) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused != 20 {
		t.Errorf("got %d of 30 heartbeats refused, want 20", refused)
	}
	for range 30 {
		if _, err := executions.Describe(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if took := a.clock.Now().Sub(epoch); took < 3*time.Second || took > 10*time.Second {
		t.Errorf("got 30 descriptions in %s, want about 4 s", took)
	}
}

// TestFullHistoryFailsTheExecution limits the history. The visit of the suite's first state has
// six events.
func TestFullHistoryFailsTheExecution(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]port.ExecutionStatus{5: port.ExecutionFailed, 6: port.ExecutionRunning} {
		a := newAccount(t, awsfake.StepFunctionsConfig{MaxHistory: limit}, func(string, string) {})
		executions := stepped{a.client(), a}
		if err := executions.Start(t.Context(), "x", json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		full, err := a.Enforce(t.Context(), "x")
		if err != nil || full != (want == port.ExecutionFailed) {
			t.Errorf("limit %d: got ended %v, %v", limit, full, err)
		}
		x, err := executions.Describe(t.Context(), "x")
		if err != nil || x.Status != want {
			t.Errorf("limit %d: got %+v, %v; want %s", limit, x, err, want)
		}
	}
}
