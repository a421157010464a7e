package answer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// ErrSpent is the error of Piece after the answer has reached the token limit of its task.
var ErrSpent = errors.New("the answer has all the tokens that the task may have")

// ErrStreamEnded is the error of a writer whose stream has a last record, or is written by
// another attempt.
var ErrStreamEnded = errors.New("the stream has ended, or another attempt writes it")

// Writer appends the answer of one attempt to the stream of its task. It appends the
// first event and the first piece at once. Pieces that arrive during an append, or within batch
// after it, are appended together. Its goroutine runs only while records are pending.
type Writer struct {
	streams *Streams
	run     *run.Run
	to      appendTarget
	batch   time.Duration
	metrics func(ctx context.Context, tokens int, now time.Time) inference.Metrics
	// refused is the reason that the writer must not append; nil if it may.
	refused error
	// ctx and stop are the arguments of Begin.
	ctx  context.Context //nolint:containedctx // of the goroutine that appends
	stop context.CancelCauseFunc

	// At most one append runs at a time. Only that one uses these fields.
	state     inference.State
	metricsAt time.Time // time of the last metrics record
	appends   int       // number of appends with a part of the answer

	mu              sync.Mutex
	pending         []inference.Record
	pieces          int // pieces of the attempt, reasoning included
	most            int // pieces that the attempt may have until the current answer ends
	choice          int // current answer
	reasoningPieces int
	calls           int // parts of calls of tools
	firstAt         time.Time
	writing         chan struct{} // closed when the goroutine of write ends; nil without one
	closing         chan struct{} // closed by Flush
	failed          error
}

// NewWriter returns the writer of an attempt of a run. Pieces that arrive within batch after an
// append are appended together. metrics returns the metrics of the task that has generated a
// number of tokens. For a further attempt, NewWriter appends the first record. For a first
// attempt, Begin appends that record during the call of the engine. The writer is refused if the
// stream has ended, or has a part of an answer of an earlier attempt.
func (s *Streams) NewWriter(
	ctx context.Context, r *run.Run, batch time.Duration, metrics func(ctx context.Context, tokens int, now time.Time) inference.Metrics,
) (*Writer, error) {
	w := &Writer{
		streams: s, run: r, batch: batch, metrics: metrics, closing: make(chan struct{}), most: r.Work.Inference.MaxTokens,
		to: appendTarget{stream: inference.StreamOf(r.Tenant, r.TaskID), writer: r.Attempt.WorkerID + "." + r.Attempt.MachineName, relaxed: true},
	}
	if r.Attempt.Number == 1 {
		w.pending = []inference.Record{{Attempt: 1, Started: started(*r)}}
		return w, nil
	}
	for range port.CommitTries {
		head, state, err := s.Read(ctx, *r)
		if err != nil {
			return nil, err
		}
		w.to.after, w.state = head.Newest, state
		switch {
		case w.state.Ended, w.state.Attempt > r.Attempt.Number:
			w.refused = ErrStreamEnded
			return w, nil
		case w.state.HasContent():
			w.refused = fault.New(fault.WorkerReset, "an earlier attempt has sent a part of its answer")
			return w, nil
		}
		first := inference.Record{Attempt: r.Attempt.Number, Begun: true}
		if !w.state.Started {
			first = inference.Record{Attempt: r.Attempt.Number, Started: started(*r)}
		}
		if err := w.append(ctx, first); err == nil || !errors.Is(err, port.ErrConflict) {
			return w, err
		}
	}
	return nil, fault.New(fault.Unavailable, "too many concurrent changes of the stream of task %s; retry", r.TaskID)
}

// started returns the first event of the stream of a task.
func started(r run.Run) *inference.Started {
	return &inference.Started{QueuePosition: r.Expectation.Ahead, PredictedStartMS: r.Expectation.StartMS}
}

// append appends records after those of this writer, in as many batches as they need.
func (w *Writer) append(ctx context.Context, records ...inference.Record) error {
	for len(records) > 0 {
		n := fitting(records)
		state, err := w.streams.append(ctx, w.to, w.state, records[:n]...)
		if err != nil {
			return err
		}
		w.to.after += int64(n)
		w.state = state
		records = records[n:]
	}
	return nil
}

// Refused returns the reason that the writer must not append; nil if it may.
func (w *Writer) Refused() error { return w.refused }

// FirstAt returns the time of the first piece or result; zero before it. It must be called after
// Flush.
func (w *Writer) FirstAt() time.Time { return w.firstAt }

// Stop ends the appends. cause is that of the context of the request to the engine.
func (w *Writer) Stop(cause error) { w.stop(cause) }

// Begin lets the writer append until ctx ends. If an append fails, it calls stop.
func (w *Writer) Begin(ctx context.Context, stop context.CancelCauseFunc) {
	w.ctx, w.stop = ctx, stop
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		w.wake()
	}
}

// wake starts the goroutine of write unless it runs. The caller holds w.mu.
func (w *Writer) wake() {
	if w.writing == nil {
		w.writing = make(chan struct{})
		go w.write()
	}
}

// write appends the pending records, and metrics when they are due, until nothing is pending.
func (w *Writer) write() {
	for {
		w.mu.Lock()
		records, pieces, calls, now := w.pending, w.pieces, w.calls, w.streams.clock.Now()
		w.pending = nil
		// The first append of a part has no metrics, so that nothing delays it.
		due := w.appends > 0 && (w.metricsAt.IsZero() || now.Sub(w.metricsAt) >= metricsEvery && len(records) > 0)
		if len(records) == 0 && !due || w.ctx.Err() != nil {
			close(w.writing)
			w.writing = nil
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if due {
			w.metricsAt = now
			records = append(records, inference.Record{Attempt: w.run.Attempt.Number, Metrics: new(w.metrics(w.ctx, pieces, now))})
		}
		// A crash of the host loses at most the part of the answer after the last metrics.
		w.to.relaxed = !due
		err := w.append(w.ctx, records...)
		switch hasPart := pieces+calls > 0 || len(records) > 1 || records[0].Started == nil; {
		case err != nil:
			w.fail(err)
		case hasPart:
			w.appends++
			w.collect()
		}
	}
}

// fail stores the error of an append and stops the answer. Nothing is appended after it.
func (w *Writer) fail(err error) {
	if errors.Is(err, port.ErrConflict) {
		err = ErrStreamEnded
	}
	w.mu.Lock()
	w.failed = err
	w.mu.Unlock()
	w.stop(err)
}

// collect waits for batch before the next append. Flush and the end of ctx end the wait.
func (w *Writer) collect() {
	over, stop := w.streams.clock.NewTimer(w.batch)
	defer stop()
	select {
	case <-over:
	case <-w.closing:
	case <-w.ctx.Done():
	}
}

// metricsEvery is the minimum time between two metrics events of a stream.
const metricsEvery = time.Second

// pieceBatch is the size in bytes at which a record of pieces is full.
const pieceBatch = 16 << 10

// Piece adds a piece of the answer. It returns ErrSpent above the token limit of the task, or
// the error of an append. Calls are not concurrent.
func (w *Writer) Piece(p port.Piece) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	if w.pieces >= w.most { // a piece is at least one token
		return ErrSpent
	}
	if len(p.Calls) > 0 {
		return w.addCalls(p.Calls)
	}
	if w.firstAt.IsZero() {
		w.firstAt = w.streams.clock.Now().UTC()
	}
	w.add(p)
	w.pieces++
	if p.Reasoning {
		w.reasoningPieces++
	}
	w.wake()
	return nil
}

// add adds a piece to the last pending record if that has the same kind and room, or as a new
// record.
func (w *Writer) add(p port.Piece) {
	r := inference.Record{Attempt: w.run.Attempt.Number, First: w.pieces - w.reasoningPieces}
	part := func(of *inference.Record) *[]string { return &of.Tokens }
	if p.Reasoning {
		r.First = w.reasoningPieces
		part = func(of *inference.Record) *[]string { return &of.Reasoning }
	}
	if n := len(w.pending); n > 0 {
		of := &w.pending[n-1]
		last := part(of)
		fits := *last != nil && (of.Logprobs == nil) == (p.Logprobs == nil)
		if fits && size(*last)+len(p.Text)+logprobsSize(of.Logprobs)+logprobSize(p.Logprobs) <= pieceBatch {
			if *last = append(*last, p.Text); p.Logprobs != nil {
				of.Logprobs = append(of.Logprobs, p.Logprobs)
			}
			return
		}
	}
	if *part(&r) = []string{p.Text}; p.Logprobs != nil {
		r.Logprobs = [][]port.TokenLogprob{p.Logprobs}
	}
	w.pending = append(w.pending, r)
}

// Limit sets the most tokens of the current answer.
func (w *Writer) Limit(most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = w.pieces + most
}

// EndChoice ends an answer that is not the last one of its request.
func (w *Writer) EndChoice(finish string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, inference.Record{Attempt: w.run.Attempt.Number, ChoiceEnd: &inference.ChoiceEnd{Index: w.choice, Finish: finish}})
	w.choice++
	w.wake()
}

func size(texts []string) (n int) {
	for _, t := range texts {
		n += len(t)
	}
	return n
}

// Result adds an embedding or a score.
func (w *Writer) Result(r inference.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.firstAt.IsZero() {
		w.firstAt = w.streams.clock.Now().UTC()
	}
	w.pending = append(w.pending, inference.Record{Attempt: w.run.Attempt.Number, Result: &r})
	w.wake()
}

// Flush returns when all pending records are appended. It returns the error of a failed append.
func (w *Writer) Flush() error {
	close(w.closing)
	w.mu.Lock()
	defer w.mu.Unlock()
	if writing := w.writing; writing != nil {
		w.mu.Unlock()
		<-writing
		w.mu.Lock()
	}
	return w.failed
}

// Close ends the stream with a record, and returns the record that ends it: an earlier one if
// the stream had already ended.
func (w *Writer) Close(ctx context.Context, last inference.Record) (inference.Record, error) {
	return w.streams.Conclude(ctx, *w.run, last)
}

// HasContent reports whether readers may have seen a part of the answer.
func (w *Writer) HasContent() bool { return w.state.HasContent() }

// Produced returns the number of tokens of the answer: the count of the engine, but at least
// one for each piece in the stream. Without a count, each part of a call is a token too.
func (w *Writer) Produced(counted int) int {
	if counted == 0 {
		return w.state.Tokens(w.run.Work.Inference.MaxTokens)
	}
	return max(counted, w.state.Pieces)
}
