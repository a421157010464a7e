package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// past is a deadline that is over.
var past = time.Unix(1, 0)

// serveSSE keeps the stack of the request's goroutine below 8 KiB, because the goroutine lasts
// as long as its reader. Code that needs more stack runs before it, or in another goroutine.
func serveSSE(streams *stream.Streams, watch *watch, w http.ResponseWriter, r *http.Request) error {
	s := &sse{w: w, conn: http.NewResponseController(w)}
	q, err := s.parse(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		s.begin()
		return nil
	}
	reader, err := streams.NewReader(r.Context(), httpkit.CallerOf(r.Context()), q)
	if err != nil {
		return fmt.Errorf("cannot follow the events: %w", err)
	}
	var end func()
	s.writing, end = watch.add(func() { _ = s.conn.SetWriteDeadline(past) }) // without deadlines, the request has one
	defer end()
	s.begin()
	_ = s.flush(nil) // if the reader has disconnected, the first batch fails
	reader.Follow(r.Context(), s.send)
	return nil
}

// sse writes the messages of one reader as Server-Sent Events.
type sse struct {
	*writing

	w    http.ResponseWriter
	conn *http.ResponseController
	// unnamed omits the field "event", for readers that handle only "message".
	unnamed bool
}

// parse reads the query.
func (s *sse) parse(r *http.Request) (q stream.Query, err error) {
	if q, err = parse(r); err != nil {
		return q, err
	}
	q.Transport = series.SSE
	s.unnamed, err = choice(r, "as", "message")
	return q, err
}

// begin writes the header.
func (s *sse) begin() {
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

// buffers are shared by all readers, so that an idle reader has no buffer.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// bufferSize is the size in bytes at which a buffer is written.
const bufferSize = 32 << 10

// send writes a batch and flushes it.
func (s *sse) send(b stream.Batch) error {
	kept := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool has nothing else
	defer buffers.Put(kept)
	text := (*kept)[:0]
	if b.Retry > 0 {
		text = append(strconv.AppendInt(append(text, "retry: "...), b.Retry.Milliseconds(), 10), '\n')
		if b.Gap == nil {
			text = append(text, '\n')
		}
	}
	if b.Gap != nil {
		data, err := json.Marshal(gapOf(*b.Gap))
		if err != nil {
			return fmt.Errorf("cannot write a gap: %w", err)
		}
		text = s.append(text, b.Cursor, contract.StreamGap, data)
	}
	at := stream.Cursor{Epoch: b.Cursor.Epoch}
	for _, e := range b.Events {
		if len(text) > bufferSize {
			if err := s.flush(text); err != nil {
				return err
			}
			text = text[:0]
		}
		at.Position = e.Position
		text = s.append(text, at, string(e.Type), e.Plain)
	}
	if b.Gap == nil && placed(b) {
		text = append(appendID(text, b.Cursor), '\n')
	}
	*kept = text[:0]
	return s.flush(text)
}

// placed reports whether a batch needs a message with its cursor, because its events do not
// have that cursor. A reader without a seat gets none.
func placed(b stream.Batch) bool {
	if n := len(b.Events); n > 0 {
		return b.Events[n-1].Position != b.Cursor.Position
	}
	return b.Cursor != stream.Cursor{} || !b.End
}

// append appends an event.
func (s *sse) append(text []byte, at stream.Cursor, name string, data []byte) []byte {
	text = appendID(text, at)
	if !s.unnamed {
		text = append(append(append(text, "event: "...), name...), '\n')
	}
	return append(append(append(text, "data: "...), data...), "\n\n"...)
}

func appendID(text []byte, at stream.Cursor) []byte {
	return append(append(append(text, "id: "...), at.String()...), '\n')
}

// flush sends a text to the reader.
func (s *sse) flush(text []byte) error {
	return s.write(func() error {
		if _, err := s.w.Write(text); err != nil {
			return fmt.Errorf("cannot write to the reader: %w", err)
		}
		if err := s.conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("cannot write to the reader: %w", err)
		}
		return nil
	})
}

func gapOf(g stream.Gap) contract.Gap {
	return contract.Gap{EventType: contract.StreamGap, Asked: g.Asked.String(), Oldest: g.Oldest.String(), Newest: g.Newest.String()}
}
