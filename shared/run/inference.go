package run

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Inference is the work of a run of kind inference: a request to the engine of its pool. A
// dispatcher is its worker; it has no machine and no execution.
type Inference struct {
	// Model is the model as the client names it, Engine the engine that it asks for; empty
	// leaves that to the pool.
	Model  string `json:"model"`
	Engine string `json:"engine,omitempty"`
	// EngineModel is the engine's name of the model; empty for the only one that it serves.
	EngineModel string `json:"engineModel,omitempty"`
	// Workload is that of port.Workload.
	Workload string `json:"workload"`
	// SessionID is empty for a task outside of a session.
	SessionID string `json:"sessionId,omitempty"`
	// Request is the JSON object for the dispatcher: the prompt and how to sample.
	Request json.RawMessage `json:"request"`
	// MaxTokens is the most tokens to generate, PromptTokens the estimated length of the
	// prompt.
	MaxTokens int `json:"maxTokens"`
	// OpenEnd: the client has set no limit, so that MaxTokens is what the context leaves.
	OpenEnd      bool `json:"openEnd,omitempty"`
	PromptTokens int  `json:"promptTokens,omitempty"`
	// Within is how long after the creation of the run the answer is of use.
	Within time.Duration `json:"within"`
	// SamplerProfile is the version of the sampling parameters, for logs; empty without.
	SamplerProfile string `json:"samplerProfileVersion,omitempty"`
	// Unstored: only the caller reads the answer, while it comes.
	Unstored bool `json:"unstored,omitempty"`
}

// HidesAnswer reports whether the answer of a run of kind inference cannot be read later: a
// client has deleted it, or does not want it stored.
func (r Run) HidesAnswer() bool {
	return r.Discarded || r.Work.Inference != nil && r.Work.Inference.Unstored
}

// ReasonDisconnected is the reason of a cancel because the caller of a task has gone.
const ReasonDisconnected = "the caller has disconnected"

// Generation is what an engine did for a run of kind inference.
type Generation struct {
	// Replica answered, with the engine's version.
	Replica       string `json:"replica,omitempty"`
	EngineVersion string `json:"engineVersion,omitempty"`
	// AskedAt is when the request was sent to the replica; zero if none was. FirstTokenAt
	// is zero without a token.
	AskedAt      time.Time `json:"askedAt,omitzero"`
	FirstTokenAt time.Time `json:"firstTokenAt,omitzero"`
	TokensIn     int       `json:"tokensIn"`
	TokensOut    int       `json:"tokensOut"`
	// ReasoningTokens are those of TokensOut that are reasoning; 0 if the engine does not
	// count them.
	ReasoningTokens int `json:"reasoningTokens,omitempty"`
	// DecodeMS is from the start of the request to its end.
	DecodeMS int64 `json:"decodeMs"`
	// Finish is that of port.FinishReason; empty for an answer without an end.
	Finish string `json:"finish,omitempty"`
	// Trace is the id of the transcript's artifact; empty without one.
	Trace string `json:"trace,omitempty"`
}

// Merged returns the generation that the end of a stream describes with what is known from
// elsewhere; nil is nothing. The tokens of the answer are those of the stream: what the engine
// generated besides, no reader has received.
func (g Generation) Merged(known *Generation) Generation {
	if known == nil {
		return g
	}
	g.Replica, g.EngineVersion, g.AskedAt, g.FirstTokenAt = known.Replica, known.EngineVersion, known.AskedAt, known.FirstTokenAt
	g.TokensIn, g.DecodeMS = max(g.TokensIn, known.TokensIn), max(g.DecodeMS, known.DecodeMS)
	return g
}

// AnswerDiscarded: a client has deleted the answer of an inference task.
type AnswerDiscarded struct{}

func (AnswerDiscarded) apply(d *draft) error {
	d.changed = d.changed || !d.Discarded
	d.Discarded = true
	return nil
}

// InferenceTaskID returns the task id of a run of kind inference: "inf_" and a ULID.
func InferenceTaskID(at time.Time, entropy [10]byte) string {
	var id ulid.ULID
	_ = id.SetTime(uint64(max(at.UnixMilli(), 0))) // fails after the year 10889 alone
	copy(id[6:], entropy[:])
	return "inf_" + id.String()
}

// AnswerBy is when the answer of a run of kind inference is of no use any more.
func (r Run) AnswerBy() time.Time { return r.CreatedAt.Add(r.Work.Inference.Within) }

// Sequence applies facts one after the other, in one commit.
type Sequence []Fact

func (s Sequence) apply(d *draft) error {
	for _, f := range s {
		if err := f.apply(d); err != nil {
			return err
		}
	}
	return nil
}

func (s Sequence) actor(r Run) Actor {
	if len(s) == 0 {
		return Actor{}
	}
	return actorOf(s[0], r)
}

// StreamEnd is the last record of the stream of a run of kind inference, as far as it
// decides about the run.
type StreamEnd struct {
	Outcome Outcome
	// Fault is that of OutcomeFailed.
	Fault *fault.Fault
	// Cancel is the request of OutcomeCancelled, for a record that does not have one.
	Cancel CancelRequested
}

// GenerationEnded: an attempt of a run of kind inference has ended. With a Stream, the
// stream decides: a cancel request that is not its last record was too late, and one that
// is needs no other request. Without one, the attempt has failed before readers saw a part
// of its answer.
type GenerationEnded struct {
	Attempt int
	Stream  *StreamEnd
	// Fault is why an attempt without a Stream failed.
	Fault *fault.Fault
	// Generation is nil if nothing is known about it.
	Generation *Generation
}

func (f GenerationEnded) apply(d *draft) error {
	if d.Work.Inference == nil || f.Attempt != d.Attempt.Number || d.State.Terminal() {
		return nil
	}
	d.answered = f.Stream != nil
	// What is charged does not change any more.
	if charged := d.Reservation != nil && !d.Reserves(); f.Generation != nil && !charged {
		d.Generation, d.changed = f.Generation, true
		if d.Reservation != nil {
			d.Reservation = d.Reservation.Noted(d.Reservation.Use(*f.Generation))
		}
		if f.Stream == nil {
			d.failedAt(*f.Generation)
		}
	}
	end := StreamEnd{Outcome: OutcomeFailed, Fault: f.Fault}
	if f.Stream != nil {
		end = *f.Stream
	}
	if d.State != Terminating && end.Fault != nil && end.Fault.Category == fault.Infrastructure {
		d.refusedBy(end.Fault)
	}
	if end.Outcome == OutcomeCancelled && d.Cancel == nil {
		d.Cancel = &CancelRequest{At: d.now, By: end.Cancel.By, Reason: end.Cancel.Reason}
		d.emit(Event{Type: EventCancelRequested, Message: end.Cancel.Reason})
	}
	why, message := end.Fault, "the engine has ended its answer"
	if end.Outcome == OutcomeCancelled {
		why = d.cancelFault()
	}
	if why != nil {
		message = why.Message
	}
	switch {
	case d.State == Terminating: // the attempt ended for another reason, such as a missing heartbeat
		if f.Stream != nil {
			d.Attempt.Outcome, d.Fault, d.changed = end.Outcome, why, true
		}
	case d.State == Running, d.State == ContainerCreating && !d.Queued():
		d.endAttempt(end.Outcome, message, why)
	case end.Outcome == OutcomeCancelled:
		d.finish(Cancelled, message, why)
	case f.Stream != nil && end.Outcome == OutcomeFailed:
		d.finish(Failed, message, why)
	}
	return nil
}

// failedAt notes the replica of a request that has failed.
func (d *draft) failedAt(g Generation) {
	if g.Replica != "" && !g.AskedAt.IsZero() && !slices.Contains(d.FailedReplicas, g.Replica) {
		d.FailedReplicas = append(slices.Clone(d.FailedReplicas), g.Replica)
	}
}

func (f GenerationEnded) actor(r Run) Actor {
	if f.Stream != nil && f.Stream.Outcome == OutcomeCancelled && r.Cancel == nil {
		return f.Stream.Cancel.actor(r)
	}
	return workerActor(r, r.Attempt.WorkerID)
}

// GenerationSettled: the slot of the engine is free after an attempt that has ended. A
// failure is tried again at once, within the policy and the deadline, unless Final.
type GenerationSettled struct {
	Attempt int
	// Final: the stream has its last record, so that nothing may follow.
	Final bool
	// Trace is the id of the transcript's artifact; empty without one.
	Trace string
}

func (f GenerationSettled) apply(d *draft) error {
	if d.Work.Inference == nil || d.State != Terminating || f.Attempt != d.Attempt.Number {
		return nil
	}
	if f.Trace != "" && d.Generation != nil {
		known := *d.Generation
		known.Trace, d.Generation = f.Trace, &known
	}
	switch {
	case d.Attempt.Outcome == OutcomeSucceeded:
		d.finish(Completed, "", nil)
	case d.Attempt.Outcome == OutcomeCancelled, d.Cancel != nil && !f.Final:
		why := d.cancelFault()
		d.finish(Cancelled, why.Message, why)
	default:
		f.failed(d)
	}
	return nil
}

func (f GenerationSettled) failed(d *draft) {
	why := d.Fault
	if d.Attempt.StartedAt.IsZero() {
		d.Spent.Starts++
	} else {
		d.Spent.Attempts++
	}
	retry := d.Policy.Retry
	left := d.Spent.Attempts < retry.MaxAttempts && d.Spent.Starts <= retry.MaxFurtherStarts
	if f.Final || !left || !why.Retryable || !d.now.Before(d.AnswerBy()) {
		d.finish(Failed, why.Message, why)
		return
	}
	d.RetryAt = d.now
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.enter(Retrying, "tried again at once", why)
}
