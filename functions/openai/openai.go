// Package openai serves a part of the OpenAI API over inference tasks: POST
// /v1/chat/completions, /v1/completions, /v1/embeddings and /v1/responses, and GET /v1/models. POST
// /v1/rerank is that of Jina and Cohere.
//
// Each request is an inference task. If its client disconnects before the end of the answer,
// the task is cancelled, unless another reader is reading the answer too.
package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// front has what all operations need.
type front struct {
	svc   *inferences.Inference
	clock clock.Clock
	// pad is the interval of the white space before an answer that is not streamed; 0 for no
	// white space.
	pad time.Duration
}

// operation is a request that an engine answers.
type operation struct {
	front
	parse func(body []byte) (openai.Request, error)
	// names maps the fields of tasks to those of requests.
	names map[string]string
	// form is the form of a completion; zero for other workloads.
	form openai.Form
}

// Routes returns the routes of the API.
func Routes(svc *inferences.Inference, c clock.Clock) []httpkit.Route {
	return PaddedRoutes(svc, c, 0)
}

// PaddedRoutes returns the routes for a gateway that does not wait long for a response. A
// response that is not streamed starts with white space, a line end after each interval. If a
// task fails after the first one, the response is an error object with the status 200.
func PaddedRoutes(svc *inferences.Inference, c clock.Clock, every time.Duration) []httpkit.Route {
	f := front{svc: svc, clock: c, pad: every}
	return append(responses{f}.routes(), []httpkit.Route{
		(&operation{front: f, parse: openai.ParseChat, form: openai.FormChat, names: map[string]string{"model_ref": "model", "prompt": "messages"}}).route("/v1/chat/completions"),
		(&operation{front: f, parse: openai.ParseCompletion, form: openai.FormText, names: map[string]string{"model_ref": "model"}}).route("/v1/completions"),
		(&operation{front: f, parse: openai.ParseEmbedding, names: map[string]string{"model_ref": "model", "prompt": "input", "input_tokens": "input", "workload": "model"}}).route("/v1/embeddings"),
		(&operation{front: f, parse: openai.ParseRerank, names: map[string]string{"model_ref": "model", "prompt": "documents", "input": "documents", "workload": "model"}}).route("/v1/rerank"),
		{
			Method: http.MethodGet, Pattern: "/v1/models", Access: httpkit.ForClients, Scope: access.RunsRead, Errors: shape(nil),
			Handle: f.models,
		},
		{
			Method: http.MethodGet, Pattern: "/v1/models/{model}", Access: httpkit.ForClients, Scope: access.RunsRead, Errors: shape(nil),
			Handle: f.model,
		},
	}...)
}

func (o *operation) route(path string) httpkit.Route {
	return httpkit.Route{
		Method: http.MethodPost, Pattern: path, Access: httpkit.ForClients, Scope: access.RunsWrite, Errors: shape(o.names), Refused: o.svc.CountRefusal,
		Handle: o.serve,
	}
}

// models lists the models of the pools.
func (f front) models(w http.ResponseWriter, r *http.Request) error {
	served, err := f.svc.Served(r.Context(), httpkit.CallerOf(r.Context()))
	if err != nil {
		return fmt.Errorf("cannot list the models: %w", err)
	}
	list := make([]openai.Model, len(served))
	for i, m := range served {
		list[i] = openai.NewModel(m.ID, m.Since)
	}
	return httpkit.WriteJSON(w, http.StatusOK, openai.NewModels(list))
}

// model returns a model of the pools.
func (f front) model(w http.ResponseWriter, r *http.Request) error {
	ctx, who, id := httpkit.Request(r, "model")
	served, err := f.svc.Served(ctx, who)
	if err != nil {
		return fmt.Errorf("cannot list the models: %w", err)
	}
	for _, m := range served {
		if m.ID == id {
			return httpkit.WriteJSON(w, http.StatusOK, openai.NewModel(m.ID, m.Since))
		}
	}
	return fault.New(fault.ModelUnknown, "no pool serves the model %.80q; GET /v1/models lists those that are served", id)
}

// call is a request with its task. It is allocated on the heap, because the goroutine that
// serves it waits for the answer most of the time and should have a small stack.
type call struct {
	*operation
	task  inferences.NewTask
	asked openai.Request
}

// serve responds to a request with the answer of its task.
func (o *operation) serve(w http.ResponseWriter, r *http.Request) error {
	c, err := o.read(w, r)
	switch {
	case err != nil:
		return err
	case c.asked.Stream:
		return c.stream(w, r)
	}
	return c.whole(w, r)
}

// read reads a request.
func (o *operation) read(w http.ResponseWriter, r *http.Request) (*call, error) {
	key, err := httpkit.IdempotencyKey(r)
	if err != nil {
		return nil, err
	}
	body, err := httpkit.ReadDocument(w, r, inference.RequestSize, httpkit.TypeJSON)
	if err != nil {
		return nil, err
	}
	asked, err := o.parse(body)
	if err != nil {
		return nil, inBody{err}
	}
	task, err := newTask(r, asked)
	if err != nil {
		return nil, err
	}
	task.IdempotencyKey, task.Unstored = key, asked.Unstored
	return &call{o, task, asked}, nil
}

func newTask(r *http.Request, asked openai.Request) (inferences.NewTask, error) {
	strict, err := httpkit.StrictTrust(r)
	if err != nil {
		return inferences.NewTask{}, err
	}
	within, err := httpkit.Deadline(r, inference.MostWithin)
	if err != nil {
		return inferences.NewTask{}, err
	}
	field := httpkit.DeadlineHeader
	if asked.Within > 0 {
		within, field = asked.Within, openai.FieldDeadline
	}
	if asked.Model == "" { // the model of a task has another name
		return inferences.NewTask{}, fault.Invalid("model", "missing model, want the id of one of GET /v1/models")
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return inferences.NewTask{}, fmt.Errorf("cannot encode the request: %w", err)
	}
	sum := sha256.Sum256(append([]byte(r.URL.Path+"\n"), text...))
	ctx := r.Context()
	return inferences.NewTask{
		Identity: httpkit.CallerOf(ctx), Model: asked.Model, Workload: asked.Workload, Request: asked.Ask, Strict: strict,
		MaxTokens: asked.MaxTokens, MaxTokensField: asked.MaxTokensField, Within: within, WithinField: field, Digest: hex.EncodeToString(sum[:]), CorrelationID: httpkit.CorrelationID(ctx),
		PayloadDigest: httpkit.PayloadDigest(ctx), TraceParent: httpkit.TraceParent(r),
	}, nil
}

// whole sends the answer when it is complete.
func (o *call) whole(w http.ResponseWriter, r *http.Request) error {
	var head openai.Head
	answer := &openai.Answer{}
	out := httpkit.NewPadded(w, o.clock, o.pad)
	defer out.End()
	err := o.svc.Call(r.Context(), &o.task, func(a inferences.Accepted) error {
		httpkit.EndWrite(r.Context())
		head = headOf(a, o.asked)
		return nil
	}, answer.AddAll)
	switch {
	case err != nil:
		return o.refuse(r, out, fmt.Errorf("cannot answer: %w", err), o.names)
	case answer.Failure != nil:
		return o.refuse(r, out, failed(*answer.Failure, o.late(head, answer)), o.names)
	case o.task.Workload == port.WorkloadEmbedding:
		return out.Write(answer.Embeddings(head, o.asked.Base64))
	case o.task.Workload == port.WorkloadRerank:
		return out.Write(answer.Ranking(head, o.asked))
	}
	return out.Write(o.form.Completion(head, answer))
}

// refuse returns why there is no answer. If the response has begun, it writes the error as the
// document of the response.
func (f front) refuse(r *http.Request, out *httpkit.Padded, why error, names map[string]string) error {
	if !out.End() {
		return why
	}
	httpkit.Log(r.Context()).WarnContext(r.Context(), "an answer failed after its response had begun", "error", why.Error())
	_, _, body := shapeOf(httpkit.ProblemOf(why), names)
	return out.Write(body)
}

func headOf(a inferences.Accepted, asked openai.Request) openai.Head {
	return openai.Head{TaskID: a.Run.TaskID, Model: asked.Model, Created: a.Run.CreatedAt}
}

// streamed is the answer of a call as Server-Sent Events. The response begins with the first
// part, so that a task that fails before has an error response with a status.
type streamed struct {
	*call
	r       *http.Request
	out     *httpkit.EventStream
	parts   *openai.Chunks
	failure *inference.Failure
}

// stream sends the parts of the answer.
func (o *call) stream(w http.ResponseWriter, r *http.Request) error {
	s := &streamed{call: o, r: r, out: httpkit.NewEventStream(w, o.clock)}
	return s.ended(o.svc.Call(r.Context(), &o.task, s.accepted, s.add))
}

func (s *streamed) accepted(a inferences.Accepted) error {
	httpkit.EndWrite(s.r.Context())
	s.parts = openai.NewChunks(s.form, headOf(a, s.asked), s.asked.Usage)
	s.asked.Ask = inference.Request{} // the wait for the answer needs no memory for it
	return nil
}

// add sends the parts of events.
func (s *streamed) add(events []inference.Event) error {
	if len(events) == 0 { // an empty line would end an event without data, which clients cannot read
		return s.send([]byte(": waiting\n"))
	}
	var text []byte
	for _, e := range events {
		if f, ok := e.Data.(inference.Failure); ok {
			if s.failure = &f; !s.out.Begun() && len(text) == 0 {
				return nil
			}
			return s.send(appendData(text, s.errorOf(f)))
		}
		for _, part := range s.parts.Add(e) {
			text = appendData(text, part)
		}
		if e.Name == inference.NameEnd {
			text = append(text, "data: [DONE]\n\n"...)
		}
	}
	if len(text) == 0 {
		return nil
	}
	return s.send(text)
}

func (s *streamed) send(text []byte) error {
	if !s.out.Begun() {
		if err := s.out.Begin(s.r); err != nil {
			return err
		}
	}
	return s.out.Send(text)
}

// ended returns the result of the handler after a call that returned err.
func (s *streamed) ended(err error) error {
	switch {
	case !s.out.Begun() && err == nil && s.failure != nil:
		return failed(*s.failure, "")
	case !s.out.Begun():
		return err
	case err != nil && s.r.Context().Err() == nil:
		httpkit.Log(s.r.Context()).WarnContext(s.r.Context(), "an answer was cut off", "error", err.Error())
		panic(http.ErrAbortHandler)
	}
	return nil
}

func appendData(text []byte, v any) []byte {
	data, _ := json.Marshal(v) //nolint:errchkjson // texts and whole numbers
	return fmt.Appendf(text, "data: %s\n\n", data)
}

// late returns the path of an answer that is not complete; empty if it has no text, or is not stored.
func (o *call) late(h openai.Head, of *openai.Answer) string {
	if !of.HasText() || o.task.Unstored {
		return ""
	}
	return "/v1/tasks/" + h.TaskID + "/stream"
}

// failed returns the problem of a failed task. It asks clients not to retry, because Sortie has
// retried the task if that could help. If the deadline has passed, it names the path with the
// text until then; at is empty without one.
func failed(f inference.Failure, at string) error {
	p := httpkit.ProblemOf(openai.FaultOf(f))
	if f.Code == fault.DeadlineUnmet { // the request was accepted, unlike one whose deadline is out of range
		p.Body.Status = http.StatusGatewayTimeout
		if at != "" {
			p.Body.Detail += "; GET " + at + " has the text until then"
			p.Header.Set("Location", at)
		}
	}
	for _, name := range []string{"Retry-After", "X-Backoff-Ms"} {
		p.Header.Del(name)
	}
	p.Header.Set(headerShouldRetry, "false")
	return p
}

func (o *operation) errorOf(f inference.Failure) openai.Error {
	_, _, body := shapeOf(httpkit.ProblemOf(openai.FaultOf(f)), o.names)
	return body
}

// Headers that the official clients read.
const (
	headerShouldRetry  = "X-Should-Retry"
	headerRetryAfterMS = "Retry-After-Ms"
)

// mostWait is the longest wait that a response asks of a client.
const mostWait = 2 * time.Minute

// shape returns the form of the error responses of an operation. names maps the fields of tasks
// to those of requests.
func shape(names map[string]string) httpkit.ErrorShape {
	return func(p *httpkit.Problem) (int, http.Header, any) { return shapeOf(p, names) }
}

func shapeOf(p *httpkit.Problem, names map[string]string) (status int, header http.Header, body openai.Error) {
	header = p.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if status = p.Body.Status; status == http.StatusConflict { // the clients try that again
		status = http.StatusBadRequest
	}
	if ms, err := strconv.ParseInt(header.Get("X-Backoff-Ms"), 10, 64); err == nil {
		wait := min(time.Duration(ms)*time.Millisecond, mostWait)
		header.Set(headerRetryAfterMS, strconv.FormatInt(wait.Milliseconds(), 10))
		header.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	if _, own := errors.AsType[inBody](p); own {
		return status, header, openai.NewBodyError(status, fault.Code(p.Body.Code), p.Body.Detail, p.Body.Field)
	}
	return status, header, openai.NewError(status, fault.Code(p.Body.Code), p.Body.Detail, p.Body.Field).Named(names)
}

// inBody is a fault that was found in the body of a request. Its field is a member of the body,
// not a field of a task.
type inBody struct{ error }

func (e inBody) Unwrap() error { return e.error }
