package runs

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Hooks calls the addresses of the hooks of jobs. It is safe for concurrent use. An error means
// that the call has no result, for example because a secret could not be read. The caller
// retries. Every answer, and a missing answer, is a result.
type Hooks interface {
	// Ask calls a hook that allows or refuses the run. It may be repeated.
	Ask(ctx context.Context, r run.Run, h spec.Hook, of spec.Constraint) (spec.HookAnswer, error)
	// Notify sends a webhook or a notification about the run. reason is the constraint, or a
	// spec.EndAction. The same run and reason have the same message id. failure is the reason that the
	// address refused the webhook; if it is empty, answer describes the response. The error is
	// a *hook.Untaken if the address may accept the webhook later.
	Notify(ctx context.Context, r run.Run, h spec.Hook, reason string) (answer, failure string, err error)
}
