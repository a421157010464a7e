package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// largestEvent is the largest size of an event of an answer, in bytes. llama-server's final
// event repeats the prompt.
const largestEvent = 8 << 20

// answer is the part of a completion that was read.
type answer struct {
	// text is the piece of the event that was read last. reasoning precedes it.
	text, reasoning string
	// calls are the parts of calls of tools in that event.
	calls []port.ToolDelta
	// top is the number of most likely tokens to pass on with each probability; nil for no
	// probabilities. logprobs are those since the last piece: a character can have several tokens.
	top      *int
	logprobs []port.TokenLogprob
	// pieces is the number of pieces with text.
	pieces int
	// finish is set by the final event; usage by the event that contains it.
	finish port.FinishReason
	usage  port.Usage
	// done means that the rest of the stream has no useful event.
	done bool
}

// Generate requests a completion as a stream. Its goroutine waits for pieces most of the time,
// so it and the functions that it calls use little stack.
func (e *Engine) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	s, err := e.begin(ctx, &g)
	if err != nil {
		return port.GenerationEnd{}, err
	}
	defer s.close()
	if err := s.read(each); err != nil {
		return port.GenerationEnd{}, err
	}
	return s.end(), nil
}

// generation is a request for a completion whose response is being read.
type generation struct {
	answer

	engine *Engine
	ctx    context.Context //nolint:containedctx // of the request
	watch  *watch
	resp   *http.Response
}

// begin sends the request for a completion.
func (e *Engine) begin(ctx context.Context, g *port.Generation) (*generation, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	path, body, err := e.dialect.generation(*g)
	if err != nil {
		return nil, err
	}
	s := &generation{engine: e}
	if g.Options != nil {
		s.top = g.Options.Logprobs
	}
	s.ctx, s.watch = watchLimits(ctx, e.cfg.Clock, g.Limits)
	s.resp, err = e.send(s.ctx, e.streams, http.MethodPost, e.at(path), body) //nolint:bodyclose // close does
	if service, is := e.dialect.(*service); is && service.renames(g.Model, err) {
		if path, body, err = service.generation(*g); err == nil {
			s.resp, err = e.send(s.ctx, e.streams, http.MethodPost, e.at(path), body) //nolint:bodyclose // close does
		}
	}
	if err != nil {
		s.watch.stop()
		return nil, err
	}
	if kind := s.resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		s.close()
		return nil, fault.New(fault.WorkerReset, "the engine answered with %q, want text/event-stream", kind)
	}
	return s, nil
}

func (s *generation) close() {
	_ = s.resp.Body.Close() // it was read as far as required
	s.watch.stop()
}

// end returns the end of an answer that was read completely.
func (s *generation) end() port.GenerationEnd {
	end := port.GenerationEnd{Finish: s.finish, Usage: s.usage}
	if !end.Counted {
		end.TokensOut = s.pieces
	}
	return end
}

// read reads the events of the answer until the final one.
func (s *generation) read(each func(port.Piece) error) error {
	for from := newEvents(s.resp.Body, largestEvent); ; {
		data, err := from.next()
		if err == io.EOF { //nolint:errorlint // the clean end
			return s.ended()
		}
		if over, err := s.event(data, err, each); over {
			return err
		}
	}
}

// event handles an event, or the error that was read in its place. over reports that no useful
// event follows.
func (s *generation) event(data []byte, failure error, each func(port.Piece) error) (over bool, err error) {
	switch {
	case s.ctx.Err() != nil && s.finish == "":
		return true, context.Cause(s.ctx) // the pieces of this event are not passed on
	case failure != nil && s.finish != "":
		return true, nil // the answer was complete
	case failure != nil:
		return true, fault.Wrap(failure, fault.WorkerReset, "the engine ended its answer after %d pieces", s.pieces)
	}
	if err := s.engine.readEvent(data, &s.answer, each); err != nil {
		if s.finish != "" && !errors.Is(err, errEach) {
			return true, nil
		}
		return true, s.masked(unwrapEach(err))
	}
	if s.text != "" || s.reasoning != "" || len(s.calls) > 0 {
		s.watch.piece()
	}
	return s.done, nil
}

// masked returns an error of the engine without the key of the request.
func (s *generation) masked(err error) error {
	if answer, ok := errors.AsType[port.EngineAnswer](err); ok {
		answer.Fault = masked(answer.Fault, s.resp)
		return answer
	}
	return err
}

// ended returns nil if the answer is complete when its stream ends, otherwise the reason.
func (s *generation) ended() error {
	switch {
	case s.finish != "":
		return nil
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	}
	return fault.New(fault.WorkerReset, "the engine ended its answer after %d pieces without its final event", s.pieces)
}

// errEach marks an error of the caller's function.
var errEach = errors.New("the caller ended the answer")

type eachError struct{ cause error }

func (e eachError) Error() string        { return e.cause.Error() }
func (e eachError) Is(target error) bool { return target == errEach }
func (e eachError) Unwrap() error        { return e.cause }

func unwrapEach(err error) error {
	if own, ok := errors.AsType[eachError](err); ok {
		return own.cause
	}
	return err
}

// readEvent passes the pieces of an event to each.
func (e *Engine) readEvent(data []byte, a *answer, each func(port.Piece) error) error {
	a.text, a.reasoning, a.calls = "", "", a.calls[:0]
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return nil
	case string(data) == "[DONE]":
		a.done = a.finish != ""
		return nil // without a finish reason the end of the stream decides
	}
	if err := e.dialect.read(data, a); err != nil {
		if !json.Valid(data) {
			err = fault.New(fault.WorkerReset, "the engine sent an event that is no JSON after %d pieces", a.pieces)
		}
		return err
	}
	for _, p := range []port.Piece{{Text: a.reasoning, Reasoning: true}, {Text: a.text, Logprobs: a.logprobs}} {
		if p.Text == "" {
			continue
		}
		a.pieces++
		if err := each(p); err != nil {
			return eachError{err}
		}
		a.logprobs = nil
	}
	if len(a.calls) == 0 {
		return nil
	}
	a.logprobs = nil
	a.pieces++
	if err := each(port.Piece{Calls: a.calls}); err != nil {
		return eachError{err}
	}
	return nil
}

// failed returns the fault for an error event. It has the code if no piece was generated
// before.
func (a *answer) failed(message string, code fault.Code) error {
	return a.failedAs(http.StatusInternalServerError, message, code)
}

// failedAs is like failed, for a response with a status.
func (a *answer) failedAs(status int, message string, code fault.Code) error {
	f := fault.New(code, "the engine failed: %s", message)
	switch {
	case a.pieces > 0:
		f = fault.New(fault.WorkerReset, "the engine failed after %d pieces: %s", a.pieces, message)
	case code == fault.InvalidParams:
		f = refusedParams(message)
	case code == fault.ReplicaExhausted:
		f = isBusy(message)
	}
	return port.EngineAnswer{Fault: f, Status: status}
}

// finishes maps the finish reasons of the engines.
var finishes = map[string]port.FinishReason{
	"stop": port.FinishStop, "eos": port.FinishStop, "eos_token": port.FinishStop, "stop_sequence": port.FinishStop, "word": port.FinishStop,
	"length": port.FinishLength, "limit": port.FinishLength,
	"content_filter": port.FinishFilter,
	"tool_calls":     port.FinishTools, "function_call": port.FinishTools,
}

// end sets the finish reason of the final event.
func (a *answer) end(reason string) error {
	finish, known := finishes[reason]
	if !known {
		return a.failedAs(http.StatusOK, "it ended with "+short(reason), fault.WorkerReset)
	}
	a.finish = finish
	return nil
}
