package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Margin is the time between the end of a request's context and Lambda's deadline.
const Margin = 500 * time.Millisecond

// Gateway serves the events of an API with an http.Handler. All fields but Ended are required.
// It is safe for concurrent use.
type Gateway struct {
	Handler http.Handler
	Log     *slog.Logger
	// Ended is called after the handler of each request has returned. status is the status of
	// the response, or 0 if its stream broke.
	Ended func(ctx context.Context, status int)
}

// Buffered answers one event with one event. It returns an error only if the payload is not an
// event.
func (g Gateway) Buffered(ctx context.Context, payload []byte) ([]byte, error) {
	ctx, cancel := Within(ctx)
	defer cancel()
	r, stage, err := read(ctx, payload)
	if err != nil {
		return nil, err
	}
	a := newAnswer(r, stage)
	if failed := g.handle(a, r); failed != nil {
		a = g.refuse(r, failed)
	}
	event, err := a.event()
	if errors.Is(err, errTooLarge) {
		g.Log.ErrorContext(ctx, "an answer exceeds Lambda's limit", "limit", AnswerLimit)
		a = g.refuse(r, fault.New(fault.Internal, "the answer has more than %d bytes, which cannot be sent; request a range of it", AnswerLimit))
		event, err = a.event()
	}
	if err != nil {
		return nil, err
	}
	g.ended(ctx, a.status)
	return event, nil
}

func (g Gateway) ended(ctx context.Context, status int) {
	if g.Ended != nil {
		g.Ended(ctx, status)
	}
}

// Within returns a context that ends Margin before the deadline of ctx. Without a deadline it
// only adds the cancel function.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-Margin))
}

// read returns the request of an event and the path of its stage. The stage is empty under a
// custom domain.
func read(ctx context.Context, payload []byte) (r *http.Request, stage string, err error) {
	var event events.APIGatewayProxyRequest
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, "", malformed(errors.New("want the JSON of a REST API's request"))
	}
	if r, err = Request(ctx, &event); err != nil {
		return nil, "", malformed(err)
	}
	stage, _ = strings.CutSuffix(event.RequestContext.Path, event.Path)
	if stage == event.RequestContext.Path {
		stage = ""
	}
	return r, stage, nil
}

// handle calls the handler. It returns an error if the handler panicked or aborted.
func (g Gateway) handle(w http.ResponseWriter, r *http.Request) (failed error) {
	defer func() {
		thrown := recover()
		if thrown == nil {
			return
		}
		ctx := r.Context()
		if thrown == http.ErrAbortHandler { //nolint:errorlint // a panic's value
			// The handler has logged the reason.
			g.Log.WarnContext(ctx, "an answer was aborted")
			failed = errors.Join(errors.New("the answer was aborted"), ctx.Err())
			return
		}
		g.Log.ErrorContext(ctx, "a handler panicked", "panic", fmt.Sprint(thrown), "stack", string(debug.Stack()))
		failed = errors.New("panic: " + fmt.Sprint(thrown))
	}()
	g.Handler.ServeHTTP(w, r)
	return nil
}

// refuse returns a response with the problem document of err.
func (g Gateway) refuse(r *http.Request, err error) *answer {
	a := newAnswer(r, "")
	httpkit.WriteProblem(a, r, err)
	return a
}
