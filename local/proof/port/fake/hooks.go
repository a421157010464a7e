package fake

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// NoHooks is an runs.Hooks whose addresses are all unreachable.
type NoHooks struct{}

const noHooks = "no address can be reached"

// Ask implements runs.Hooks.
func (NoHooks) Ask(context.Context, run.Run, spec.Hook, spec.Constraint) (spec.HookAnswer, error) {
	return spec.HookAnswer{Unavailable: true, Detail: noHooks}, nil
}

// Notify implements runs.Hooks.
func (NoHooks) Notify(context.Context, run.Run, spec.Hook, string) (answer, failure string, err error) {
	return "", noHooks, nil
}
