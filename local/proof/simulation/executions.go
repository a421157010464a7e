package simulation

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
type executions struct{ w *base }

// call makes a call whose request or response can be lost.
func (e *executions) call(ctx context.Context, do func() error) error {
	w := e.w
	w.maybeCrash()
	w.maybeInterrupt()
	if err := interrupted(ctx); err != nil {
		return err
	}
	if w.down(executionsOutage) || w.chance(w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	err := do()
	if w.chance(w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "response lost")
	}
	return err
}

// Start implements port.Executions.
func (e *executions) Start(ctx context.Context, name string, input json.RawMessage) error {
	e.checkStart(name, input)
	return e.call(ctx, func() error { return e.w.home.executions().Start(ctx, name, input) })
}

// Join implements port.JoinedExecutions. Some calls are not joined.
func (e *executions) Join(ctx context.Context, calls ...port.ExecutionCall) (context.Context, func() []bool) {
	joined, ok := e.w.home.executions().(port.JoinedExecutions)
	none := make([]bool, len(calls))
	switch {
	case !ok:
		return ctx, func() []bool { return none }
	case e.w.chance(e.w.plan.lostCalls):
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
	return e.call(ctx, func() error { return e.w.home.executions().Succeed(ctx, token, output) })
}

// Fail implements port.Executions.
func (e *executions) Fail(ctx context.Context, token, name, cause string) error {
	e.checkToken(token)
	return e.call(ctx, func() error { return e.w.home.executions().Fail(ctx, token, name, cause) })
}

// Heartbeat implements port.Executions.
func (e *executions) Heartbeat(ctx context.Context, token string) error {
	return e.call(ctx, func() error { return e.w.home.executions().Heartbeat(ctx, token) })
}

// Stop implements port.Executions.
func (e *executions) Stop(ctx context.Context, name, cause string) error {
	return e.call(ctx, func() error { return e.w.stop(ctx, name, cause) })
}

// stop stops an execution.
func (w *base) stop(ctx context.Context, name, cause string) error {
	err := w.home.executions().Stop(ctx, name, cause)
	if at := w.positions[name]; at != nil && err == nil {
		at.ended = true
	}
	return err
}

// Describe implements port.Executions.
func (e *executions) Describe(ctx context.Context, name string) (x port.Execution, err error) {
	err = e.call(ctx, func() (err error) { x, err = e.w.home.executions().Describe(ctx, name); return err })
	return x, err
}

// checkStart checks that the run is committed before its execution starts.
func (e *executions) checkStart(name string, input json.RawMessage) {
	var ref run.Ref
	err := json.Unmarshal(input, &ref)
	if err == nil {
		e.w.observe(func() { _, err = e.w.process.store.Load(context.Background(), ref) })
	}
	if err != nil {
		e.w.fail("execution %s starts before its run is committed: %v", name, err)
	}
}

// checkToken checks that the token was removed from the record by a commit before it is
// completed.
func (e *executions) checkToken(token string) {
	e.w.observe(func() {
		for _, r := range e.w.current() {
			if r.Wait.Token == token {
				e.w.fail("token of %s is completed before the commit, in %s", r.ID, r.State)
			}
		}
	})
}

// position is the current state of an execution.
type position struct {
	state string
	// generation and token belong to a token state whose handler was called.
	generation int
	token      string
	// entries counts the states that the execution has entered.
	entries int
	ended   bool
	// behindSince is the time since which the execution and its record disagree; zero while
	// they agree.
	behindSince time.Time
}

// final are the states that end an execution.
var final = []string{string(run.StepCompleted), string(run.StepFailed), string(run.StepCancelled)}

// entered records that an execution enters a state.
func (w *base) entered(execution, state string) {
	at := w.positions[execution]
	if at == nil {
		at = &position{}
		w.positions[execution] = at
	}
	*at = position{state: state, entries: at.entries + 1, behindSince: at.behindSince, ended: slices.Contains(final, state)}
}

// watchCall records the token of a token state. It checks that no state times out whose worker
// sends heartbeats.
func (w *base) watchCall(payload json.RawMessage) {
	var in runs.StepInput
	if err := json.Unmarshal(payload, &in); err != nil {
		w.fail("cannot decode the input of a function: %v", err)
		return
	}
	if at := w.positions[in.Execution]; at != nil && in.Token != "" {
		at.generation, at.token = in.Generation, in.Token
		w.tokens[in.Token] = in.Generation
	}
	if why := in.Carried.Error; why != nil && why.Error == "States.HeartbeatTimeout" {
		w.watch.HeartbeatTimeout(in.Ref)
	}
}
