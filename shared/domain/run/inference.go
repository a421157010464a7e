package run

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// HasExecution reports whether a state machine runs the run. An inference run has a dispatcher
// instead.
func (r Run) HasExecution() bool { return r.Work.Inference == nil }

// HidesAnswer reports whether the answer of an inference run cannot be read later: a client has
// deleted it, or requested not to store it.
func (r Run) HidesAnswer() bool {
	return r.Discarded || r.Work.Inference != nil && r.Work.Inference.Unstored
}

// unreadSlack is how long after its deadline the answer that is not to be stored can still be read.
const unreadSlack = time.Minute

// AnswerDue returns when the prompt, the stream and the transcript of an inference run that has ended
// are deleted: at once if a client has deleted the answer, or requested not to store it and has
// received it or disconnected; after the deadline if such a client did neither; and after KeptFor. It is
// zero for other runs, and after the deletion.
func (r Run) AnswerDue() time.Time {
	work := r.Work.Inference
	switch {
	case !r.State.Terminal() || r.AnswerDeleted || work == nil:
		return time.Time{}
	case r.Discarded:
		return r.EndedAt
	case work.Unstored:
		return later(r.EndedAt, r.AnswerBy()).Add(unreadSlack)
	case work.KeptFor > 0:
		return r.EndedAt.Add(work.KeptFor)
	}
	return time.Time{}
}

// ReasonDisconnected is the reason of a cancel request that is made because the caller
// disconnected.
const ReasonDisconnected = "the caller has disconnected"

// Generation describes what an engine did for an inference run.
type Generation struct {
	// Replica is the replica that answered, EngineVersion the version of its engine.
	Replica       string `json:"replica,omitempty"`
	EngineVersion string `json:"engineVersion,omitempty"`
	// RequestedAt is when the request was sent to the replica; zero if it was not sent.
	// FirstTokenAt is zero without a token.
	RequestedAt  time.Time `json:"askedAt,omitzero"`
	FirstTokenAt time.Time `json:"firstTokenAt,omitzero"`
	TokensIn     int       `json:"tokensIn"`
	TokensOut    int       `json:"tokensOut"`
	// CachedTokens is the number of tokens in TokensIn that the engine has read from its cache; 0
	// if the engine does not count them.
	CachedTokens int `json:"cachedTokens,omitempty"`
	// ReasoningTokens is the number of reasoning tokens in TokensOut; 0 if the engine does not
	// count them.
	ReasoningTokens int `json:"reasoningTokens,omitempty"`
	// DecodeMS is the time from the start of the request to its end, in milliseconds.
	DecodeMS int64 `json:"decodeMs"`
	// Finish is a value of port.FinishReason; empty for an answer without an end.
	Finish string `json:"finish,omitempty"`
	// Trace is the id of the transcript artifact; empty without one.
	Trace string `json:"trace,omitempty"`
}

// Merged returns the generation that the end of a stream describes, completed with what is
// known from elsewhere; known may be nil. TokensOut stays that of the stream, because readers
// have received no other tokens.
func (g Generation) Merged(known *Generation) Generation {
	if known == nil {
		return g
	}
	g.Replica, g.EngineVersion, g.RequestedAt, g.FirstTokenAt = known.Replica, known.EngineVersion, known.RequestedAt, known.FirstTokenAt
	g.TokensIn, g.DecodeMS = max(g.TokensIn, known.TokensIn), max(g.DecodeMS, known.DecodeMS)
	g.CachedTokens = max(g.CachedTokens, known.CachedTokens)
	return g
}

// AnswerDiscarded: a client has deleted the answer of an inference run, or the caller for whom it is
// not stored has no more use for it.
type AnswerDiscarded struct{}

func (AnswerDiscarded) apply(d *draft) error {
	d.changed = d.changed || !d.Discarded
	d.Discarded = true
	return nil
}

// AnswerDeleted: the stream and the transcript of an inference run were deleted; see Run.AnswerDue. The
// fact deletes the prompt and the options in the record.
type AnswerDeleted struct{}

func (AnswerDeleted) apply(d *draft) error {
	if d.AnswerDue().IsZero() {
		return nil
	}
	work := *d.Work.Inference
	work.Request, work.Input, d.Work.Inference = nil, nil, &work
	if g := d.Generation; g != nil && g.Trace != "" {
		used := *g
		used.Trace, d.Generation = "", &used
	}
	d.Run.AnswerDeleted, d.changed = true, true
	return nil
}

// AnswerBy returns the time after which the answer of an inference run is no longer useful.
func (r Run) AnswerBy() time.Time { return r.CreatedAt.Add(r.Work.Inference.Within) }

// Sequence applies facts in order, in one commit.
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

// StreamEnd is the part of the last record of an inference run's stream that decides about the
// run.
type StreamEnd struct {
	Outcome Outcome
	// Fault is set for OutcomeFailed.
	Fault *fault.Fault
	// Cancel is the cancel request for OutcomeCancelled. It is used if the record of the run
	// has none.
	Cancel CancelRequested
}

// GenerationEnded: an attempt of an inference run has ended. If Stream is set, it decides: a
// cancel request takes effect only if it is the last record of the stream. Otherwise the
// attempt failed before readers received a part of its answer.
type GenerationEnded struct {
	Attempt int
	Stream  *StreamEnd
	// Fault is the reason of a failure without a Stream.
	Fault *fault.Fault
	// Generation is nil if nothing is known about it.
	Generation *Generation
}

func (f GenerationEnded) apply(d *draft) error {
	if d.Work.Inference == nil || f.Attempt != d.Attempt.Number || d.State.Terminal() {
		return nil
	}
	d.usageFinal = f.Stream != nil
	// The usage that is charged does not change any more.
	if charged := d.Reservation != nil && !d.Reserves(); f.Generation != nil && !charged {
		d.Generation, d.changed = f.Generation, true
		d.Reservation = d.Reservation.generated(*f.Generation)
		if f.Stream == nil {
			d.failedAt(*f.Generation)
		}
	}
	end := StreamEnd{Outcome: OutcomeFailed, Fault: f.Fault}
	if f.Stream != nil {
		end = *f.Stream
	}
	if d.State != Terminating && end.Fault != nil && end.Fault.Category == fault.Infrastructure {
		d.recordRefusal(end.Fault)
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

// failedAt records the replica of a failed request.
func (d *draft) failedAt(g Generation) {
	if g.Replica != "" && !g.RequestedAt.IsZero() && !slices.Contains(d.FailedReplicas, g.Replica) {
		d.FailedReplicas = append(slices.Clone(d.FailedReplicas), g.Replica)
	}
}

func (f GenerationEnded) actor(r Run) Actor {
	if f.Stream != nil && f.Stream.Outcome == OutcomeCancelled && r.Cancel == nil {
		return f.Stream.Cancel.actor(r)
	}
	return workerActor(r, r.Attempt.WorkerID)
}

// GenerationSettled: an attempt has ended and its slot of the engine is free. A failure is
// retried at once, within the retry policy and the deadline, unless Final is set: in the pool, or
// in a fallback. Each pool has its own attempts.
type GenerationSettled struct {
	Attempt int
	// Final: the stream has its last record, so nothing may follow.
	Final bool
	// Trace is the id of the transcript artifact; empty without one.
	Trace string
	// Elsewhere: another replica of the pool may work, so a failure is retried in the pool first.
	// Closed are the pools that admit no tasks.
	Elsewhere bool
	Closed    []string
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
	over := f.Final || !d.now.Before(d.AnswerBy())
	if !over && d.reroute(f.Closed, f.Elsewhere && left) {
		return
	}
	if over || !left || !why.Retryable {
		d.finish(Failed, why.Message, why)
		return
	}
	d.retryNow("tried again at once")
}
