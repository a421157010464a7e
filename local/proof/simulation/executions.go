package simulation

import (
	"context"
	"encoding/json"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// executions is the engine behind calls whose requests and responses are lost.
type executions struct {
	*engine.Engine
	process *process
}

func (e *executions) call(do func() error) error {
	e.process.maybeCrash()
	if e.process.w.chance(e.process.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	err := do()
	if e.process.w.chance(e.process.w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "response lost")
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

// checkStart checks that the run is committed before its execution starts.
func (e *executions) checkStart(ctx context.Context, name string, input json.RawMessage) {
	if e.process.crashed {
		return
	}
	var ref run.Ref
	err := json.Unmarshal(input, &ref)
	if err == nil {
		_, err = e.process.store.Load(ctx, ref)
	}
	if err != nil {
		e.process.w.fail("execution %s starts before its run is committed: %v", name, err)
	}
}

// checkToken checks that the commit before the completion of a token has
// removed the token from the record.
func (e *executions) checkToken(ctx context.Context, token string) {
	if e.process.crashed {
		return
	}
	for _, r := range e.process.w.records(ctx) {
		if r.Wait.Token == token {
			e.process.w.fail("token of %s is completed before the commit, in %s", r.ID, r.State)
		}
	}
}
