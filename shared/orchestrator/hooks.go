package orchestrator

import (
	"context"

	"github.com/sortie-dev/sortie/shared/run"
)

// Hooks calls the addresses that jobs name. It is safe for concurrent use. An error
// means that nothing is known about the address, such as a secret that cannot be read
// now, and the caller tries again; every answer of the address, and none, is a result.
type Hooks interface {
	// Ask asks a hook whether the run is allowed. It may be repeated.
	Ask(ctx context.Context, r run.Run, h run.Hook, of run.Constraint) (run.HookAnswer, error)
	// Notify sends a webhook about the run. reason is the constraint, onSuccess or
	// onFailure. The same run and reason have the same message id. failure says why
	// the address did not take it; if it is empty, answer describes the response.
	Notify(ctx context.Context, r run.Run, h run.Hook, reason string) (answer, failure string, err error)
}

// NoHooks reaches no address.
type NoHooks struct{}

const noHooks = "this deployment calls no hooks"

// Ask implements Hooks.
func (NoHooks) Ask(context.Context, run.Run, run.Hook, run.Constraint) (run.HookAnswer, error) {
	return run.HookAnswer{Unavailable: true, Detail: noHooks}, nil
}

// Notify implements Hooks.
func (NoHooks) Notify(context.Context, run.Run, run.Hook, string) (answer, failure string, err error) {
	return "", noHooks, nil
}
