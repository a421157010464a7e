package runs

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// runCalls counts the platform calls that are made with a context for a run and are not yet in
// a commit of the run.
type runCalls struct {
	port.Calls
	of run.Ref
}

type runCallsKey struct{}

// countCalls returns a context that counts platform calls for a run. Commits of the run with
// this context add them to the run. Calls after the last commit are lost.
func countCalls(ctx context.Context, of run.Ref) context.Context {
	c := &runCalls{of: of}
	return port.WithCalls(context.WithValue(ctx, runCallsKey{}, c), &c.Calls)
}

// withCalls adds the calls that the context has counted to the run of the decision. The caller
// calls undo if the decision is not committed; it returns the calls to the context.
func withCalls(ctx context.Context, d run.Decision) (counted run.Decision, undo func()) {
	c, ok := ctx.Value(runCallsKey{}).(*runCalls)
	if !ok || c.of != d.Run.Ref() {
		return d, func() {}
	}
	taken := c.Take()
	d.Run.Tally = d.Run.Tally.Called(taken)
	return d, func() { c.Add(taken) }
}
