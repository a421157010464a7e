package fake

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// NoHooks is an runs.Hooks whose addresses are all unreachable.
type NoHooks struct{}

const noHooks = "no address can be reached"

// Ask implements runs.Hooks.
func (NoHooks) Ask(context.Context, run.Run, run.Hook, run.Constraint) (run.HookAnswer, error) {
	return run.HookAnswer{Unavailable: true, Detail: noHooks}, nil
}

// Notify implements runs.Hooks.
func (NoHooks) Notify(context.Context, run.Run, run.Hook, string) (answer, failure string, err error) {
	return "", noHooks, nil
}
