package mockengine

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Reasoning is in a prompt that the mock answers with reasoning before its answer.
const Reasoning = "cause-reasoning"

// Course is how a generation runs.
type Course struct {
	// Failure ends it after a number of pieces; empty for a whole answer.
	Failure Failure
	After   int
	// Every is the time for each token, First the time before the first one besides.
	First, Every time.Duration
	// Repeats is the number of the piece that is sent twice, from 1; 0 for no piece. The engine
	// counts it once.
	Repeats int
	// Reasons is how many of the first tokens are reasoning. For a prompt with the text
	// Reasoning it is half of them.
	Reasons int
	// Finish is the reason of the end; empty is what the tokens say.
	Finish port.FinishReason
	// Keeps is how long the engine keeps the slot of a request that its caller has closed.
	Keeps time.Duration
}

// leave frees the slot of a generation, of one that its caller has closed only when the
// engine notices that.
func (e *Engine) leave(c Course, ended bool) {
	if ended || c.Keeps == 0 {
		e.end()
		return
	}
	go func() {
		_ = clock.Sleep(context.Background(), e.cfg.Clock, c.Keeps)
		e.end()
	}()
}
