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

	"github.com/sortie-dev/sortie/shared/httpkit"
)

// Broken is the error of a stream that ends before its answer does.
type Broken struct{ Cause error }

func (e Broken) Error() string { return "the answer broke off: " + e.Cause.Error() }

// Unwrap gives the cause.
func (e Broken) Unwrap() error { return e.Cause }

// What handlers are told, and say, about an answer that is not sent.
var (
	errGone  = errors.New("the reader of the answer is gone")
	errShort = errors.New("the answer is shorter than it says")
)

// Streaming answers one event with a stream, which begins as soon as the handler
// has written its status. Its error is that of a payload which is no event.
//
// The caller reads the response to its end and closes it; a Close before the end
// is a client that went away: the request's context ends, and Close waits for the
// handler. Once the stream has begun, whatever goes wrong is an error of its
// reader.
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
	<-s.begun
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
		g.Log.ErrorContext(ctx, "an answer is shorter than it says")
		failed = errShort
	}
	s.WriteHeader(http.StatusOK) // for a handler that wrote nothing
	if failed == nil {
		g.ended(ctx, s.status)
	} else {
		g.ended(ctx, 0)
		s.breakOff(failed)
	}
	_ = s.writer.Close() // it has no error
}

// stream is the http.ResponseWriter of an answer that is sent as it is written.
// Handlers write from one goroutine, as net/http demands of them.
type stream struct {
	header http.Header
	sent   http.Header
	status int
	begun  chan struct{}
	reader *io.PipeReader
	writer *io.PipeWriter

	ctx     context.Context
	stage   string
	silent  bool  // what is written is not sent
	length  int64 // as announced; -1 where it was not
	written int64
}

func newStream(r *http.Request, stage string) *stream {
	s := &stream{header: http.Header{}, stage: stage, begun: make(chan struct{}), ctx: r.Context(), silent: r.Method == http.MethodHead, length: -1}
	s.reader, s.writer = io.Pipe()
	return s
}

// Header is what goes with the status; what is set later is not sent.
func (s *stream) Header() http.Header { return s.header }

// WriteHeader begins the stream. From then on it breaks when the context ends;
// a status that is written later than that is the handler's word about it.
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
	close(s.begun)
}

// breakOff ends the stream with an error, unless it has ended.
func (s *stream) breakOff(why error) { _ = s.writer.CloseWithError(Broken{why}) } // it has no error

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
		return n, fmt.Errorf("cannot send the answer on: %w", err)
	}
	return n, nil
}

// Flush sends the status; what is written is sent as it is written.
func (s *stream) Flush() { s.WriteHeader(http.StatusOK) }

// short says whether the answer is shorter than it was announced.
func (s *stream) short() bool { return s.length >= 0 && s.written < s.length }

// body is what Lambda reads of a stream.
type body struct {
	*io.PipeReader
	once sync.Once
	gone func()
}

// Close ends the request and waits until its handler is done, so that nothing
// of it runs on into the next one.
func (b *body) Close() error {
	err := b.CloseWithError(errGone)
	b.once.Do(b.gone)
	return err
}
