package fake

import (
	"context"
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/port"
)

// Executions wraps another Executions and adds failures. It is safe for concurrent use if the
// wrapped one is. The subject of a call is the name of the execution or the token.
type Executions struct {
	calls
	inner port.Executions
}

var _ port.Executions = (*Executions)(nil)

// NewExecutions wraps inner.
func NewExecutions(inner port.Executions, plan Plan) *Executions {
	return &Executions{inner: inner, calls: calls{plan: plan}}
}

// Start implements port.Executions.
func (e *Executions) Start(ctx context.Context, name string, input json.RawMessage) error {
	return e.call(ctx, "Start", name, true, func() error { return e.inner.Start(ctx, name, input) })
}

// Succeed implements port.Executions.
func (e *Executions) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	return e.call(ctx, "Succeed", token, true, func() error { return e.inner.Succeed(ctx, token, output) })
}

// Fail implements port.Executions.
func (e *Executions) Fail(ctx context.Context, token, name, cause string) error {
	return e.call(ctx, "Fail", token, true, func() error { return e.inner.Fail(ctx, token, name, cause) })
}

// Heartbeat implements port.Executions.
func (e *Executions) Heartbeat(ctx context.Context, token string) error {
	return e.call(ctx, "Heartbeat", token, true, func() error { return e.inner.Heartbeat(ctx, token) })
}

// Stop implements port.Executions.
func (e *Executions) Stop(ctx context.Context, name, cause string) error {
	return e.call(ctx, "Stop", name, true, func() error { return e.inner.Stop(ctx, name, cause) })
}

// Describe implements port.Executions.
func (e *Executions) Describe(ctx context.Context, name string) (port.Execution, error) {
	return result(ctx, &e.calls, "Describe", name, false, func() (port.Execution, error) { return e.inner.Describe(ctx, name) })
}
