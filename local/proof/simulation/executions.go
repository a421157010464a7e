package simulation

import (
	"context"
	"encoding/json"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// executions is the engine with calls that get lost, in both ways.
type executions struct {
	*engine.Engine
	process *process
}

func (e *executions) call(do func() error) error {
	e.process.mortal()
	if e.process.w.chance(e.process.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "the call was lost")
	}
	err := do()
	if e.process.w.chance(e.process.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "the answer was lost")
	}
	return err
}

// Start implements port.Executions.
func (e *executions) Start(ctx context.Context, name string, input json.RawMessage) error {
	e.checkStart(ctx, name, input)
	return e.call(func() error { return e.Engine.Start(ctx, name, input) })
}

// Succeed implements port.Executions.
func (e *executions) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	e.checkToken(ctx, token)
	return e.call(func() error { return e.Engine.Succeed(ctx, token, output) })
}

// Fail implements port.Executions.
func (e *executions) Fail(ctx context.Context, token, name, cause string) error {
	e.checkToken(ctx, token)
	return e.call(func() error { return e.Engine.Fail(ctx, token, name, cause) })
}

// Heartbeat implements port.Executions.
func (e *executions) Heartbeat(ctx context.Context, token string) error {
	return e.call(func() error { return e.Engine.Heartbeat(ctx, token) })
}

// Stop implements port.Executions.
func (e *executions) Stop(ctx context.Context, name, cause string) error {
	return e.call(func() error { return e.Engine.Stop(ctx, name, cause) })
}

// checkStart: an execution is committed before it is begun.
func (e *executions) checkStart(ctx context.Context, name string, input json.RawMessage) {
	if e.process.dead {
		return
	}
	var ref run.Ref
	err := json.Unmarshal(input, &ref)
	if err == nil {
		_, err = e.process.store.Load(ctx, ref)
	}
	if err != nil {
		e.process.w.broken("execution %s is begun before its run is committed: %v", name, err)
	}
}

// checkToken: what completes a token is committed before it does, and takes the
// token out of the record.
func (e *executions) checkToken(ctx context.Context, token string) {
	if e.process.dead {
		return
	}
	for _, r := range e.process.w.records(ctx) {
		if r.Wait.Token == token {
			e.process.w.broken("the token of %s is completed before that is committed, in %s", r.ID, r.State)
		}
	}
}
