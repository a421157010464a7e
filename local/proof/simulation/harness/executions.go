package harness

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// executions injects faults into calls of the home's executions: requests and responses are
// lost.
type executions struct{ W *Base }

// Call makes a call whose request or response can be lost.
func (e *executions) Call(ctx context.Context, do func() error) error {
	w := e.W
	w.MaybeCrash()
	w.MaybeInterrupt()
	if err := Interrupted(ctx); err != nil {
		return err
	}
	if w.Down(ExecutionsOutage) || w.Injects("lost call", w.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	err := do()
	if w.Injects("lost call", w.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "response lost")
	}
	return err
}

// Start implements port.Executions.
func (e *executions) Start(ctx context.Context, name string, input json.RawMessage) error {
	e.checkStart(name, input)
	return e.Call(ctx, func() error { return e.W.Home.executions().Start(ctx, name, input) })
}

// Join implements port.JoinedExecutions. Some calls are not joined.
func (e *executions) Join(ctx context.Context, calls ...port.ExecutionCall) (context.Context, func() []bool) {
	joined, ok := e.W.Home.executions().(port.JoinedExecutions)
	none := make([]bool, len(calls))
	switch {
	case !ok:
		return ctx, func() []bool { return none }
	case e.W.Injects("lost call", e.W.Plan.LostCalls):
		ctx, finish := joined.Join(ctx)
		return ctx, func() []bool { finish(); return none }
	}
	ctx, finish := joined.Join(ctx, calls...)
	return ctx, func() []bool {
		made := finish()
		for i, c := range calls {
			switch {
			case !made[i]:
			case c.Start != "":
				e.checkStart(c.Start, c.Data)
			default:
				e.checkToken(c.Token)
			}
		}
		return made
	}
}

// Succeed implements port.Executions.
func (e *executions) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	e.checkToken(token)
	return e.Call(ctx, func() error { return e.W.Home.executions().Succeed(ctx, token, output) })
}

// Fail implements port.Executions.
func (e *executions) Fail(ctx context.Context, token, name, cause string) error {
	e.checkToken(token)
	return e.Call(ctx, func() error { return e.W.Home.executions().Fail(ctx, token, name, cause) })
}

// Heartbeat implements port.Executions.
func (e *executions) Heartbeat(ctx context.Context, token string) error {
	return e.Call(ctx, func() error { return e.W.Home.executions().Heartbeat(ctx, token) })
}

// Stop implements port.Executions.
func (e *executions) Stop(ctx context.Context, name, cause string) error {
	return e.Call(ctx, func() error { return e.W.Stop(ctx, name, cause) })
}

// Stop stops an execution.
func (w *Base) Stop(ctx context.Context, name, cause string) error {
	err := w.Home.executions().Stop(ctx, name, cause)
	if at := w.Positions[name]; at != nil && err == nil {
		at.Ended = true
	}
	return err
}

// Describe implements port.Executions.
func (e *executions) Describe(ctx context.Context, name string) (x port.Execution, err error) {
	err = e.Call(ctx, func() (err error) { x, err = e.W.Home.executions().Describe(ctx, name); return err })
	return x, err
}

// checkStart checks that the run is committed before its execution starts.
func (e *executions) checkStart(name string, input json.RawMessage) {
	var ref run.Ref
	err := json.Unmarshal(input, &ref)
	if err == nil {
		e.W.Observe(func() { _, err = e.W.Process.Store.Load(context.Background(), ref) })
	}
	if err != nil {
		e.W.Fail("execution %s starts before its run is committed: %v", name, err)
	}
}

// checkToken checks that the token was removed from the record by a commit before it is
// completed.
func (e *executions) checkToken(token string) {
	e.W.Observe(func() {
		for _, r := range e.W.Current() {
			if r.Wait.Token == token {
				e.W.Fail("token of %s is completed before the commit, in %s", r.ID, r.State)
			}
		}
	})
}

// Position is the current state of an execution.
type Position struct {
	State string
	// Generation and token belong to a token state whose handler was called.
	Generation int
	token      string
	// entries counts the states that the execution has entered.
	entries int
	Ended   bool
	// BehindSince is the time since which the execution and its record disagree; zero while
	// they agree.
	BehindSince time.Time
}

// final are the states that end an execution.
var final = []string{string(run.StepCompleted), string(run.StepFailed), string(run.StepCancelled)}

// entered records that an execution enters a state.
func (w *Base) entered(execution, state string) {
	at := w.Positions[execution]
	if at == nil {
		at = &Position{}
		w.Positions[execution] = at
	}
	*at = Position{State: state, entries: at.entries + 1, BehindSince: at.BehindSince, Ended: slices.Contains(final, state)}
}

// watchCall records the token of a token state. It checks that no state times out whose worker
// sends heartbeats.
func (w *Base) watchCall(payload json.RawMessage) {
	var in runs.StepInput
	if err := json.Unmarshal(payload, &in); err != nil {
		w.Fail("cannot decode the input of a function: %v", err)
		return
	}
	if at := w.Positions[in.Execution]; at != nil && in.Token != "" {
		at.Generation, at.token = in.Generation, in.Token
		w.Tokens[in.Token] = in.Generation
	}
	if why := in.Carried.Error; why != nil && why.Error == "States.HeartbeatTimeout" {
		w.Watch.HeartbeatTimeout(in.Ref)
	}
}
