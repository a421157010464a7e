package process

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

// loop runs Lambda's runtime, which writes to the standard log.
func (p *Process) loop(handler any) {
	log.SetFlags(0)
	log.SetOutput(runtimeLog{p.Log})
	lambda.Start(handler)
}

// payloads is a lambda.Handler, for which the runtime does not decode payloads.
type payloads func(ctx context.Context, event []byte) ([]byte, error)

// Invoke implements lambda.Handler.
func (f payloads) Invoke(ctx context.Context, event []byte) ([]byte, error) { return f(ctx, event) }

// ServeHTTP serves the routes to API Gateway with buffered responses. tokens returns the tokens
// of clients. It may be nil if no route requires one.
func (p *Process) ServeHTTP(routes []httpkit.Route, tokens httpkit.TokenSource) {
	p.run(p.buffered(p.gateway(routes, tokens, nil)))
}

// ServeStream serves the routes to API Gateway with streamed responses. On targets that cannot
// stream it is ServeHTTP (see Buffered).
func (p *Process) ServeStream(routes []httpkit.Route, tokens httpkit.TokenSource) {
	p.stream(p.gateway(routes, tokens, nil))
}

// ServeReaders is ServeStream for routes that accept tickets.
func (p *Process) ServeReaders(routes []httpkit.Route, tokens httpkit.TokenSource, tickets httpkit.TicketSource) {
	p.stream(p.gateway(routes, tokens, tickets))
}

// ServeSockets serves a WebSocket API. The routes answer handshakes, the functions of g answer
// the other events.
func (p *Process) ServeSockets(routes []httpkit.Route, tokens httpkit.TokenSource, tickets httpkit.TicketSource, g gateway.SocketGateway) {
	g.Gateway = p.gateway(routes, tokens, tickets)
	p.run(payloads(func(ctx context.Context, event []byte) ([]byte, error) {
		ctx, end := p.begin(ctx)
		defer end()
		answer, err := g.Serve(ctx, event)
		if errors.Is(err, gateway.ErrMalformed) {
			err = lambdakit.InvalidInput{Cause: err}
		}
		if err != nil {
			lambdakit.Count(ctx, "EventsFailed", 1)
			return nil, p.failure(ctx, err)
		}
		return answer, nil
	}))
}

// Buffered reports whether responses are buffered (SORTIE_STREAMING=buffered). It is set for a
// target that cannot stream.
func (p *Process) Buffered() bool { return p.Option("SORTIE_STREAMING", "") == "buffered" }

// Streamed returns d, or 0 if responses are buffered.
func (p *Process) Streamed(d time.Duration) time.Duration {
	if p.Buffered() {
		return 0
	}
	return d
}

func (p *Process) stream(g gateway.Gateway) {
	if p.Buffered() {
		p.run(p.buffered(g))
		return
	}
	p.run(func(ctx context.Context, event json.RawMessage) (*events.APIGatewayProxyStreamingResponse, error) {
		ctx, end := p.begin(ctx)
		g := g
		g.Ended = func(ctx context.Context, status int) {
			countStatus(ctx, status)
			end()
		}
		response, err := g.Streaming(ctx, event)
		if err != nil {
			end()
			return nil, p.failure(ctx, lambdakit.InvalidInput{Cause: err})
		}
		return response, nil
	})
}

func (p *Process) buffered(g gateway.Gateway) payloads {
	return func(ctx context.Context, event []byte) ([]byte, error) {
		ctx, end := p.begin(ctx)
		defer end()
		answer, err := g.Buffered(ctx, event)
		if err != nil {
			return nil, p.failure(ctx, lambdakit.InvalidInput{Cause: err})
		}
		return answer, nil
	}
}

func (p *Process) gateway(routes []httpkit.Route, tokens httpkit.TokenSource, tickets httpkit.TicketSource) gateway.Gateway {
	var origins []string
	if text := p.Option("SORTIE_ORIGINS", ""); text != "" {
		origins = strings.Split(text, ",")
	}
	server, err := httpkit.New(httpkit.Config{
		Origins: origins, Tokens: tokens, Tickets: tickets, Clock: p.host.Clock, Log: p.Log, NewID: uuid.NewString,
	}, routes...)
	p.Check(err)
	if server == nil {
		server = http.NotFoundHandler()
	}
	return gateway.Gateway{Handler: server, Log: p.Log, Ended: countStatus}
}

// countStatus counts a failed request by the class of its status, or as RequestsBroken if its
// stream broke. It does not count successes: API Gateway counts all requests for free, and a
// custom metric costs $0.30 a month.
func countStatus(ctx context.Context, status int) {
	switch {
	case status == 0:
		lambdakit.Count(ctx, "RequestsBroken", 1)
	case status >= http.StatusBadRequest:
		lambdakit.Count(ctx, "Requests"+strconv.Itoa(status/100)+"xx", 1)
	}
}

// ServeTask serves a function that a state machine invokes. Its errors have the names of
// lambdakit.ErrorName.
func (p *Process) ServeTask(task lambdakit.TaskFunc) { p.run(p.task(task, "Tasks")) }

// ServeEvent serves a function that a schedule, a rule or a stream invokes. After an error the
// source delivers the event again.
func (p *Process) ServeEvent(task lambdakit.TaskFunc) { p.run(p.task(task, "Events")) }

func (p *Process) task(task lambdakit.TaskFunc, counted string) payloads {
	return func(ctx context.Context, event []byte) ([]byte, error) {
		ctx, end := p.begin(ctx)
		defer end()
		ctx, cancel := gateway.Within(ctx)
		defer cancel()
		output, err := task(ctx, event)
		if err != nil {
			lambdakit.Count(ctx, counted+"Failed", 1)
			return nil, p.failure(ctx, err)
		}
		// A success has no metric: Lambda counts successes for free, and a custom metric costs
		// $0.30 a month.
		return output, nil
	}
}

// failure logs an error and returns it to the runtime under its name.
func (p *Process) failure(ctx context.Context, err error) error {
	attrs := []any{"name", lambdakit.ErrorName(err), "error", err}
	if panicked, ok := err.(lambdakit.Panicked); ok { //nolint:errorlint // as the name is
		attrs = append(attrs, "stack", panicked.Stack)
	}
	p.Log.ErrorContext(ctx, "the call failed", attrs...)
	return messages.InvokeResponse_Error{Type: lambdakit.ErrorName(err), Message: redacted(err.Error())}
}
