package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/tmaxmax/go-sse"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// largestEvent is the size of an event of an answer, in bytes. llama-server's final event
// repeats the prompt.
const largestEvent = 8 << 20

// answer is a completion as far as it has been read.
type answer struct {
	// text is the piece of the event that was read last.
	text string
	// pieces is how many had text.
	pieces int
	// finish is set by the final event; usage by the event that has it.
	finish port.FinishReason
	usage  port.Usage
	// done: nothing follows that is of use.
	done bool
}

// Generate requests a completion as a stream.
func (e *Engine) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	if err := g.Check(); err != nil {
		return port.GenerationEnd{}, err
	}
	path, body, err := e.dialect.generation(g)
	if err != nil {
		return port.GenerationEnd{}, err
	}
	ctx, watch := watchLimits(ctx, e.cfg.Clock, g.Limits)
	defer watch.stop()
	resp, err := e.send(ctx, http.MethodPost, e.base.JoinPath(path), body)
	if err != nil {
		return port.GenerationEnd{}, err
	}
	defer resp.Body.Close()
	var a answer
	if err := e.readAnswer(ctx, resp, &a, watch, each); err != nil {
		return port.GenerationEnd{}, err
	}
	end := port.GenerationEnd{Finish: a.finish, Usage: a.usage}
	if !end.Counted {
		end.TokensOut = a.pieces
	}
	return end, nil
}

// readAnswer reads the events of an answer until the final one.
func (e *Engine) readAnswer(ctx context.Context, resp *http.Response, a *answer, watch *watch, each func(port.Piece) error) error {
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fault.New(fault.WorkerReset, "the engine answered with %q, want text/event-stream", kind)
	}
	for event, err := range sse.Read(resp.Body, &sse.ReadConfig{MaxEventSize: largestEvent}) {
		switch {
		case ctx.Err() != nil && a.finish == "":
			return context.Cause(ctx) // what was received before is not handed over
		case err != nil && a.finish != "":
			return nil // the answer was complete
		case err != nil:
			return fault.Wrap(err, fault.WorkerReset, "the engine ended its answer after %d pieces", a.pieces)
		}
		if err := e.readEvent([]byte(event.Data), a, each); err != nil {
			if a.finish != "" && !errors.Is(err, errEach) {
				return nil
			}
			return unwrapEach(err)
		}
		if a.text != "" {
			watch.piece()
		}
		if a.done {
			return nil
		}
	}
	switch {
	case a.finish != "":
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return fault.New(fault.WorkerReset, "the engine ended its answer after %d pieces without its final event", a.pieces)
	}
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

// readEvent hands the piece of an event to each.
func (e *Engine) readEvent(data []byte, a *answer, each func(port.Piece) error) error {
	a.text = ""
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return nil
	case string(data) == "[DONE]":
		a.done = a.finish != ""
		return nil // without a finish reason the end of the stream decides
	case !json.Valid(data):
		return fault.New(fault.WorkerReset, "the engine sent an event that is no JSON after %d pieces", a.pieces)
	}
	if err := e.dialect.read(data, a); err != nil {
		return err
	}
	if a.text == "" {
		return nil
	}
	a.pieces++
	if err := each(port.Piece{Text: a.text}); err != nil {
		return eachError{err}
	}
	return nil
}

// failed returns the fault for an error event: code if nothing was generated yet.
func (a *answer) failed(message string, code fault.Code) error {
	switch {
	case a.pieces > 0:
		return fault.New(fault.WorkerReset, "the engine failed after %d pieces: %s", a.pieces, message)
	case code == fault.InvalidParams:
		return refusedParams(message)
	}
	return fault.New(code, "the engine failed: %s", message)
}

// finishes maps the engines' words.
var finishes = map[string]port.FinishReason{
	"stop": port.FinishStop, "eos": port.FinishStop, "eos_token": port.FinishStop, "stop_sequence": port.FinishStop, "word": port.FinishStop,
	"length": port.FinishLength, "limit": port.FinishLength,
}

// end takes the final event's reason.
func (a *answer) end(reason string) error {
	finish, known := finishes[reason]
	if !known {
		return a.failed("it ended with "+short(reason), fault.WorkerReset)
	}
	a.finish = finish
	return nil
}
