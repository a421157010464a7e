package orchestrator

import (
	"context"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// runCalls are the calls to platforms that a context makes for a run, and that no commit of
// the run has counted.
type runCalls struct {
	port.Calls
	of run.Ref
}

type runCallsKey struct{}

// countCalls returns a context whose calls to platforms are added to the run by its commits
// with the context. Calls after the last commit are not counted.
func countCalls(ctx context.Context, of run.Ref) context.Context {
	c := &runCalls{of: of}
	return port.WithCalls(context.WithValue(ctx, runCallsKey{}, c), &c.Calls)
}

// withCalls returns the decision with the calls of the context for its run. undo gives them
// back if the decision is not committed.
func withCalls(ctx context.Context, d run.Decision) (counted run.Decision, undo func()) {
	c, ok := ctx.Value(runCallsKey{}).(*runCalls)
	if !ok || c.of != d.Run.Ref() {
		return d, func() {}
	}
	taken := c.Take()
	d.Run.Tally = d.Run.Tally.Called(taken)
	return d, func() { c.Add(taken) }
}
