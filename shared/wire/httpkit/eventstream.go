package httpkit

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// writeLimit is the time limit of one write to a reader. A slower reader is disconnected.
const writeLimit = 20 * time.Second

// ErrNoBody is returned by EventStream.Begin for a HEAD request, which has no body.
var ErrNoBody = errors.New("HEAD has no body")

// EventStream writes server-sent events to one reader. It is not safe for concurrent use.
type EventStream struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	clock clock.Clock
	begun bool
}

// NewEventStream returns a stream. Begin starts the response.
func NewEventStream(w http.ResponseWriter, c clock.Clock) *EventStream {
	return &EventStream{w: w, conn: http.NewResponseController(w), clock: c}
}

// Begun reports whether the response has begun. If so, no error response can be sent.
func (s *EventStream) Begun() bool { return s.begun }

// Begin sends the headers. It returns ErrNoBody for HEAD.
func (s *EventStream) Begin(r *http.Request) error {
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.begun = true
	if r.Method == http.MethodHead {
		return ErrNoBody
	}
	return s.Send(nil)
}

// Send writes the text of events and flushes it.
func (s *EventStream) Send(text []byte) error {
	over, stop := s.clock.NewTimer(writeLimit)
	written := make(chan struct{})
	defer close(written)
	defer stop()
	go func() {
		select {
		case <-over:
			_ = s.conn.SetWriteDeadline(past) // without deadlines, the request has its own
		case <-written:
		}
	}()
	if _, err := s.w.Write(text); err != nil {
		return fmt.Errorf("cannot write to the reader: %w", err)
	}
	if err := s.conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("cannot write to the reader: %w", err)
	}
	return nil
}
