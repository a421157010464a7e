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
	// Notify sends a webhook about the run. reason is the constraint, onSuccess, onFailure
	// or onSkip. The same run and reason have the same message id. failure says why
	// the address refused it; if it is empty, answer describes the response. The error of an
	// address that may take it later is an *Untaken.
	Notify(ctx context.Context, r run.Run, h run.Hook, reason string) (answer, failure string, err error)
}

// Untaken is the error of a webhook that its address did not take and may take later: it
// gave no answer, or one that is no decision.
type Untaken struct{ Detail string }

func (e *Untaken) Error() string { return e.Detail }
