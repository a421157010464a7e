package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Broken is the error of a stream that ends before its response is complete.
type Broken struct{ Cause error }

func (e Broken) Error() string { return "the stream broke: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e Broken) Unwrap() error { return e.Cause }

// The causes of a broken stream.
var (
	errGone  = errors.New("the client has disconnected")
	errShort = errors.New("the answer is shorter than its Content-Length")
)

// Streaming answers one event with a stream. It returns when the handler has written its
// status. It returns an error only if the payload is not an event.
//
// The caller reads the response to its end and closes it. A Close before the end means that the
// client has disconnected. It ends the context of the request and waits for the handler. A
// failure after the start of the stream is an error of its reader.
func (g Gateway) Streaming(ctx context.Context, payload []byte) (*events.APIGatewayProxyStreamingResponse, error) {
	ctx, cancel := Within(ctx)
	r, stage, err := read(ctx, payload)
	if err != nil {
		cancel()
		return nil, err
	}
	s := newStream(r, stage)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		g.serve(s, r)
	}()
	<-s.started
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: s.status, MultiValueHeaders: s.sent,
		Body: &body{PipeReader: s.reader, gone: func() { cancel(); <-done }},
	}, nil
}

func (g Gateway) serve(s *stream, r *http.Request) {
	ctx := r.Context()
	failed := g.handle(s, r)
	switch {
	case failed != nil && s.status == 0:
		httpkit.WriteProblem(s, r, failed)
		failed = nil
	case failed == nil && s.short():
		g.Log.ErrorContext(ctx, "an answer is shorter than its Content-Length")
		failed = errShort
	}
	s.WriteHeader(http.StatusOK) // for a handler that wrote nothing
	if failed == nil {
		g.ended(ctx, s.status)
	} else {
		g.ended(ctx, 0)
		s.breakOff(failed)
	}
	_ = s.writer.Close() // Close returns no error
}

// stream is an http.ResponseWriter that sends each write. Only one goroutine may use it, as
// net/http requires of handlers.
type stream struct {
	header  http.Header
	sent    http.Header
	status  int
	started chan struct{}
	reader  *io.PipeReader
	writer  *io.PipeWriter

	ctx     context.Context
	stage   string
	silent  bool  // the body is discarded
	length  int64 // Content-Length, or -1
	written int64
}

func newStream(r *http.Request, stage string) *stream {
	s := &stream{header: http.Header{}, stage: stage, started: make(chan struct{}), ctx: r.Context(), silent: r.Method == http.MethodHead, length: -1}
	s.reader, s.writer = io.Pipe()
	return s
}

// Header implements http.ResponseWriter. Headers set after the status are not sent.
func (s *stream) Header() http.Header { return s.header }

// WriteHeader starts the stream. From then on the end of the context breaks the stream. If the
// context has ended before, the handler decides which response to send.
func (s *stream) WriteHeader(status int) {
	if s.status != 0 || status < http.StatusOK {
		return
	}
	s.status, s.sent = status, settled(s.header, s.stage)
	s.silent = s.silent || !hasBody(status)
	if n, err := strconv.ParseInt(s.sent.Get("Content-Length"), 10, 64); err == nil && !s.silent {
		s.length = n
	}
	if s.ctx.Err() == nil {
		context.AfterFunc(s.ctx, func() { s.breakOff(context.Cause(s.ctx)) })
	}
	close(s.started)
}

// breakOff ends the stream with an error unless it has ended.
func (s *stream) breakOff(why error) { _ = s.writer.CloseWithError(Broken{why}) } // CloseWithError returns no error

func (s *stream) Write(p []byte) (int, error) {
	if s.status == 0 {
		sniff(s.header, p)
		s.WriteHeader(http.StatusOK)
	}
	if s.silent {
		return len(p), nil
	}
	if s.length >= 0 && s.written+int64(len(p)) > s.length {
		return 0, http.ErrContentLength
	}
	n, err := s.writer.Write(p)
	s.written += int64(n)
	if err != nil {
		return n, fmt.Errorf("cannot send the answer: %w", err)
	}
	return n, nil
}

// Flush sends the status. Each write is sent at once anyway.
func (s *stream) Flush() { s.WriteHeader(http.StatusOK) }

// short reports whether the response is shorter than its Content-Length.
func (s *stream) short() bool { return s.length >= 0 && s.written < s.length }

// body is the reader of a stream for Lambda's runtime.
type body struct {
	*io.PipeReader
	once sync.Once
	gone func()
}

// Close ends the request and waits for its handler, so that the handler does not run during the
// next request.
func (b *body) Close() error {
	err := b.CloseWithError(errGone)
	b.once.Do(b.gone)
	return err
}
