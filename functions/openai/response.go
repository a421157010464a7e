package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// responseNames maps the fields of tasks to the members of a response.
var responseNames = map[string]string{
	"model_ref": "model", "prompt": "input", "messages": "input", "max_tokens": "max_output_tokens",
	"reasoning_effort": "reasoning.effort", "logprobs": "top_logprobs", "response_format": "text.format", "response_format.json_schema": "text.format", "tools.function": "tools",
}

// responses serves the Responses API. A response is the answer of a task, and its id is derived
// from the task's id.
type responses struct{ front }

func (s responses) routes() []httpkit.Route {
	route := func(method, path string, scope access.Scope, handle httpkit.Handler, query ...string) httpkit.Route {
		return httpkit.Route{
			Method: method, Pattern: path, Access: httpkit.ForClients, Scope: scope, Errors: shape(responseNames), Query: query, Handle: handle,
		}
	}
	create := route(http.MethodPost, "/v1/responses", access.RunsWrite, s.create)
	create.Refused = s.svc.CountRefusal
	return []httpkit.Route{
		create,
		route(http.MethodGet, "/v1/responses/{response_id}", access.RunsRead, s.get, "stream", "starting_after", "include", "include_obfuscation"),
		route(http.MethodDelete, "/v1/responses/{response_id}", access.RunsWrite, s.remove),
		route(http.MethodPost, "/v1/responses/{response_id}/cancel", access.RunsWrite, s.cancel),
	}
}

func (s responses) create(w http.ResponseWriter, r *http.Request) error {
	key, err := httpkit.IdempotencyKey(r)
	if err != nil {
		return err
	}
	body, err := httpkit.ReadDocument(w, r, inference.RequestSize, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	asked, options, err := openai.ParseResponse(body)
	if err != nil {
		return inBody{err}
	}
	if err := s.continued(r, &asked, options); err != nil {
		return err
	}
	task, err := newTask(r, asked)
	if err != nil {
		return err
	}
	task.IdempotencyKey, task.Unstored = key, options.Unstored
	if !options.Background {
		return s.foreground(w, r, task, asked.Stream)
	}
	accepted, err := s.svc.Create(context.WithoutCancel(r.Context()), task)
	if err != nil {
		return fmt.Errorf("cannot accept the response: %w", err)
	}
	httpkit.EndWrite(r.Context())
	if !asked.Stream {
		return s.show(w, r, accepted.Run)
	}
	return s.follow(w, r, accepted.Run, -1)
}

// foreground responds to a caller. The task is cancelled if the caller disconnects.
func (s responses) foreground(w http.ResponseWriter, r *http.Request, task inferences.NewTask, stream bool) error {
	var of run.Run
	if stream {
		var out *responseStream
		err := s.svc.Call(r.Context(), &task, func(a inferences.Accepted) error {
			httpkit.EndWrite(r.Context())
			out = s.newStream(w, r, a.Run, -1)
			return out.begin()
		}, func(events []inference.Event) error { return out.send(events) })
		return out.ended(err)
	}
	answer := &openai.Answer{}
	out := httpkit.NewPadded(w, s.clock, s.pad)
	defer out.End()
	err := s.svc.Call(r.Context(), &task, func(a inferences.Accepted) error {
		httpkit.EndWrite(r.Context())
		of = a.Run
		return nil
	}, answer.AddAll)
	switch {
	case err != nil:
		return s.refuse(r, out, fmt.Errorf("cannot answer: %w", err), responseNames)
	case answer.Failure != nil && answer.Failure.Code != fault.Cancelled:
		at := ""
		if answer.HasText() && !task.Unstored {
			at = "/v1/responses/" + openai.Waiting(of).ID
		}
		return s.refuse(r, out, failed(*answer.Failure, at), responseNames)
	}
	return out.Write(openai.Ended(of, answer))
}

// responseStream sends the events of a response after a sequence number.
type responseStream struct {
	*httpkit.EventStream
	r      *http.Request
	events *openai.ResponseEvents
	after  int
}

func (s responses) newStream(w http.ResponseWriter, r *http.Request, of run.Run, after int) *responseStream {
	return &responseStream{httpkit.NewEventStream(w, s.clock), r, openai.NewResponseEvents(of), after}
}

func (s *responseStream) begin() error {
	if err := s.Begin(s.r); err != nil {
		return err
	}
	return s.write([]openai.ResponseEvent{s.events.Created()})
}

func (s *responseStream) send(events []inference.Event) error {
	if len(events) == 0 {
		return s.Send([]byte(": waiting\n"))
	}
	var made []openai.ResponseEvent
	for _, e := range events {
		made = append(made, s.events.Add(e)...)
	}
	return s.write(made)
}

func (s *responseStream) write(made []openai.ResponseEvent) error {
	var text []byte
	for _, e := range made {
		if e.SequenceNumber > s.after {
			data, _ := json.Marshal(e) //nolint:errchkjson // texts and numbers
			text = fmt.Appendf(text, "event: %s\ndata: %s\n\n", e.Type, data)
		}
	}
	if len(text) == 0 {
		return nil
	}
	return s.Send(text)
}

// ended returns the result of a handler after a stream.
func (s *responseStream) ended(err error) error {
	switch {
	case s == nil || !s.Begun():
		return err
	case err != nil && !errors.Is(err, httpkit.ErrNoBody) && s.r.Context().Err() == nil:
		httpkit.Log(s.r.Context()).WarnContext(s.r.Context(), "a response was cut off", "error", err.Error())
		panic(http.ErrAbortHandler)
	}
	return nil
}

// follow streams a response after a sequence number. The task continues if the reader
// disconnects.
func (s responses) follow(w http.ResponseWriter, r *http.Request, of run.Run, after int) error {
	out := s.newStream(w, r, of, after)
	err := s.svc.Follow(r.Context(), httpkit.CallerOf(r.Context()), of.TaskID, inference.EventID{},
		func(run.Run) error { return out.begin() }, func(events []inference.Event) error { return out.send(events) })
	return out.ended(err)
}

// task returns the task of the response in the path.
func (s responses) task(r *http.Request) (run.Run, openai.ResponseOptions, error) {
	return s.stored(r, r.PathValue("response_id"))
}

func (s responses) get(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	after := -1
	var err error
	if text := query.Get("starting_after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return fault.Invalid("starting_after", "malformed starting_after %.20q, want the sequence_number of an event", text)
		}
	}
	stream := query.Get("stream")
	if stream != "" && stream != "true" && stream != "false" {
		return fault.Invalid("stream", "malformed stream %.20q, want true or false", stream)
	}
	of, _, err := s.task(r)
	if err != nil {
		return err
	}
	if stream == "true" || stream == "" && asksForStream(r) {
		return s.follow(w, r, of, after)
	}
	if after >= 0 {
		return fault.Invalid("starting_after", "starting_after without a stream, want stream=true")
	}
	return s.show(w, r, of)
}

// asksForStream reports whether a GET has the member stream in its body, as OpenAI's client for
// Go sends it.
func asksForStream(r *http.Request) bool {
	const most = 1 << 10
	var body struct {
		Stream bool `json:"stream"`
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, most))
	return err == nil && json.Unmarshal(text, &body) == nil && body.Stream
}

// show sends the current state of a response.
func (s responses) show(w http.ResponseWriter, r *http.Request, of run.Run) error {
	ended, err := s.svc.Ended(r.Context(), of)
	if err != nil {
		return err
	}
	if !ended {
		return httpkit.WriteJSON(w, http.StatusOK, openai.Waiting(of))
	}
	return s.showEnd(w, r, of)
}

// errNoEnd ends the wait for the end of a response.
var errNoEnd = errors.New("no event while the connection was idle")

// showEnd sends a response when it has ended. If no event arrives while it waits, it sends the
// current state.
func (s responses) showEnd(w http.ResponseWriter, r *http.Request, of run.Run) error {
	answer, err := s.answerOf(r, of)
	if errors.Is(err, errNoEnd) {
		return httpkit.WriteJSON(w, http.StatusOK, openai.Waiting(of))
	}
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, openai.Ended(of, answer))
}

// answerOf returns the answer of a task that has ended or ends soon. It returns errNoEnd if no event
// arrives while it waits.
func (s responses) answerOf(r *http.Request, of run.Run) (*openai.Answer, error) {
	answer := &openai.Answer{}
	ctx, who := r.Context(), httpkit.CallerOf(r.Context())
	err := s.svc.Follow(ctx, who, of.TaskID, inference.EventID{}, func(run.Run) error { return nil }, func(events []inference.Event) error {
		if len(events) == 0 {
			return errNoEnd
		}
		return answer.AddAll(events)
	})
	if fault.Is(err, fault.CursorExpired) {
		var stored []inference.Event
		if stored, err = s.svc.Stored(ctx, who, of); err == nil {
			err = answer.AddAll(stored)
		}
	}
	return answer, err
}

func (s responses) cancel(w http.ResponseWriter, r *http.Request) error {
	if err := httpkit.DecodeOptionalJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	of, options, err := s.task(r)
	if err != nil {
		return err
	}
	if !options.Background {
		return fault.Invalid("response_id", "the response is not in the background; its caller cancels it by disconnecting")
	}
	asked, err := s.svc.Cancel(r.Context(), httpkit.CallerOf(r.Context()), of.TaskID, "")
	if err != nil && !fault.Is(err, fault.TaskAlreadyTerminal) {
		return fmt.Errorf("cannot cancel the response: %w", err)
	}
	if asked.State == run.Terminating && asked.Attempt.WorkerID == "" { // no dispatcher has started it yet
		return httpkit.WriteJSON(w, http.StatusOK, openai.Waiting(asked))
	}
	return s.showEnd(w, r, of) // an engine may still generate the next token
}

func (s responses) remove(w http.ResponseWriter, r *http.Request) error {
	of, _, err := s.task(r)
	if err != nil {
		return err
	}
	if err := s.svc.Discard(r.Context(), httpkit.CallerOf(r.Context()), of.TaskID); err != nil {
		return fmt.Errorf("cannot delete the response: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, openai.NewDeleted(of.TaskID))
}
