package port

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Observer receives each commit of a run that this process has made, once, after it is durable. A
// commit whose result is unknown is not reported. Observer is safe for concurrent use. It must
// return at once, because commits wait for it.
type Observer interface {
	// Committed receives the record after a commit, and its events.
	Committed(ctx context.Context, r run.Run, events []run.Event)
}

// Traces is an Observer that exports traces after the commits, in a process that does not run
// between its calls. It is safe for concurrent use.
type Traces interface {
	Observer
	// Flush sends the observed traces until ctx ends. The rest is sent by a later call, or
	// dropped.
	Flush(ctx context.Context)
	// Dropped returns the number of commits that were dropped since the last call.
	Dropped() int
}
