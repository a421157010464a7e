package routing

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// Shadow is a copy of a task that another model answers too, after the task has its answer. No client
// gets the answer to the copy: it is measured and dropped.
type Shadow struct {
	// Model is the model of the copy. Percent is the share of the tasks that are copied to it.
	Model   string `json:"model"`
	Percent int    `json:"percent"`
	// End is nil before the copy has ended. It stays nil if the process of the copy ends first.
	End *ShadowEnd `json:"end,omitempty"`
}

// ShadowOutcome is how a copy has ended.
type ShadowOutcome string

// The outcomes.
const (
	ShadowCompleted ShadowOutcome = "completed"
	ShadowFailed    ShadowOutcome = "failed"
	// ShadowDropped: the model could not serve the copy, its pool was busy, or a task has needed the
	// slot.
	ShadowDropped ShadowOutcome = "dropped"
)

// ShadowEnd is the end of a copy.
type ShadowEnd struct {
	Outcome ShadowOutcome `json:"outcome"`
	// Reason says why the copy has no answer; empty if it has one.
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	// Pool is empty for a copy that no pool could serve.
	Pool string `json:"pool,omitempty"`
	// FirstTokenMS is the time from the request to the first token, DurationMS that to the end; 0 for a
	// copy that was not sent.
	FirstTokenMS int64 `json:"firstTokenMs,omitempty"`
	DurationMS   int64 `json:"durationMs,omitempty"`
	// The tokens and their cost at the price of the model are those of a whole answer.
	usage.Tokens
	CostNano int64 `json:"costNano,omitempty"`
	// Finish is a value of port.FinishReason; empty without an answer.
	Finish string `json:"finish,omitempty"`
}

// Charge returns what the copy has used; nil if it was not sent. It is counted under usage.KeyShadow,
// and no budget pays it.
func (s *Shadow) Charge() *usage.Charge {
	if s == nil || s.End == nil || s.End.Outcome == ShadowDropped && s.End.DurationMS == 0 {
		return nil
	}
	sum := usage.Sum{Tokens: s.End.Tokens, TimeMS: s.End.DurationMS, CostNano: s.End.CostNano}
	if s.End.Outcome == ShadowCompleted {
		sum.Tasks = 1
	}
	return &usage.Charge{Model: s.Model, Key: usage.KeyShadow, Sum: sum, At: s.End.At}
}
