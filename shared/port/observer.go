package port

import (
	"context"

	"github.com/sortie-dev/sortie/shared/run"
)

// Observer receives the commits of runs that this process has made, once each, after they
// are durable. A commit with an unknown result is not observed. Observer is safe for
// concurrent use and returns at once, because commits wait for it.
type Observer interface {
	// Committed receives the record after a commit, and its events.
	Committed(ctx context.Context, r run.Run, events []run.Event)
}

// Traces is an Observer that exports traces after the commits, for a process that does not
// run between its calls. It is safe for concurrent use.
type Traces interface {
	Observer
	// Flush sends what was observed, until ctx ends. What it cannot send is sent by a later
	// call, or dropped.
	Flush(ctx context.Context)
	// Dropped returns how many commits were dropped since the last call.
	Dropped() int
}
