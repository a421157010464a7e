package mockengine

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Reasoning in a prompt makes the mock send reasoning before its answer.
const Reasoning = "cause-reasoning"

// Course is the plan of a generation.
type Course struct {
	// Failure ends the generation after After pieces; empty for a complete answer.
	Failure Failure
	After   int
	// Every is the time for each token. First is additional time before the first one.
	First, Every time.Duration
	// Repeats is the number of the piece that is sent twice, from 1; 0 for none of them. The
	// engine counts the piece once.
	Repeats int
	// Reasons is the number of first tokens that are reasoning. For a prompt with the text
	// Reasoning it is half of the tokens.
	Reasons int
	// Cached is the number of tokens of the prompt that the engine has read from its cache.
	Cached int
	// Finish is the finish reason; empty means the one that follows from the tokens.
	Finish port.FinishReason
	// Keeps is how long the engine keeps the slot of a request after its caller has closed it.
	Keeps time.Duration
}

// leave frees the slot of a generation. If the caller closed the request, it does so when the
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
