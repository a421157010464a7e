package explain

import (
	"cmp"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// Shadow compares a task with its copy for another model.
type Shadow struct {
	*routing.Shadow
	// Task has the times and the tokens of the task itself, from the request to its engine; nil before
	// its answer is complete.
	Task *routing.ShadowEnd
}

// shadow says what has become of the copy of an inference task.
func (x *Explanation) shadow(r run.Run) {
	s := r.Shadow
	if s == nil {
		return
	}
	x.Shadow = &Shadow{Shadow: s}
	copied := fmt.Sprintf("; a copy of the task for model %s, one of %d %%, ", s.Model, s.Percent)
	switch {
	case !r.State.Terminal():
		x.Message += copied + "follows its answer"
		return
	case r.State != run.Completed:
		x.Message += copied + "was not sent, as the task has no answer"
		return
	}
	own := &routing.ShadowEnd{Outcome: routing.ShadowCompleted}
	if g := r.Generation; g != nil {
		own.DurationMS, own.Tokens, own.Finish = g.DecodeMS, usage.Of(g.TokensIn, g.CachedTokens, g.TokensOut), g.Finish
		if !g.FirstTokenAt.IsZero() {
			own.FirstTokenMS = g.FirstTokenAt.Sub(g.RequestedAt).Milliseconds()
		}
	}
	x.Shadow.Task = own
	switch end := s.End; {
	case end == nil:
		x.Message += copied + "has no result yet, or was lost"
	case end.Outcome == routing.ShadowDropped:
		x.Message += copied + "was dropped: " + end.Reason
	case end.Outcome == routing.ShadowFailed:
		x.Message += copied + "failed: " + end.Reason
	default:
		x.Message += copied + fmt.Sprintf("has %d generated tokens (the task %d) after %d ms (%d ms), the first after %d ms (%d ms), finish %s (%s)",
			end.Output, own.Output, end.DurationMS, own.DurationMS, end.FirstTokenMS, own.FirstTokenMS, cmp.Or(end.Finish, "unknown"), cmp.Or(own.Finish, "unknown"))
	}
}
