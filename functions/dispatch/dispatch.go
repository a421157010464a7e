// Package dispatch serves inference tasks. It writes the answers of engines to the streams of
// the tasks of a pool. Commits that give a task a slot invoke it. A sweep invokes it for tasks
// that no dispatcher serves.
//
// An invocation serves the tasks of its pool, including those that get their
// slots later, and ends when the pool has no task. If other invocations serve the pool, it ends at
// once. Events may be repeated, late or lost.
package dispatch

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// The limits of an invocation.
const (
	// MostWithin is the longest deadline of a request whose caller waits, and the longest time
	// for an answer. A new invocation of 15 minutes (AWS's limit) can serve it to its end.
	MostWithin = 14 * time.Minute
	// Batch is how long tokens are collected for one write to the table.
	Batch = 300 * time.Millisecond
	// Tasks is the number of tasks that one invocation serves concurrently. The function has
	// 128 MB, and with them 0.07 of a processor.
	Tasks = 16
	// settling is the time at the end of an invocation that is reserved for ending tasks. An
	// engine has five seconds to free their slots.
	settling = 15 * time.Second
)

// ServePool serves the tasks of a pool until a time.
type ServePool func(ctx context.Context, call inferences.DispatchCall, end time.Time) error

// Handler returns the handler of events, each the JSON of a call. now returns the time for an
// invocation without a deadline.
func Handler(serve ServePool, now func() time.Time) lambdakit.TaskFunc {
	return lambdakit.Task(func(ctx context.Context, call inferences.DispatchCall) (struct{}, error) {
		if err := call.Check(); err != nil {
			return struct{}{}, lambdakit.InvalidInput{Cause: err}
		}
		deadline, ok := ctx.Deadline()
		if !ok {
			deadline = now().Add(MostWithin + 2*settling)
		}
		return struct{}{}, serve(ctx, call, deadline.Add(-settling))
	})
}
