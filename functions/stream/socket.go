package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func serveSocket(streams *stream.Streams, watch *watch, w http.ResponseWriter, r *http.Request) error {
	q, err := parse(r)
	if err != nil {
		return err
	}
	q.Transport = series.WebSocket
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	reader, err := streams.NewReader(ctx, httpkit.CallerOf(ctx), q)
	if err != nil {
		return fmt.Errorf("cannot follow the events: %w", err)
	}
	s := &socket{w: w, r: r, left: cancel}
	var end func()
	s.writing, end = watch.add(func() { _ = s.conn.CloseNow() }) // makes the write fail
	defer end()
	reader.Follow(ctx, s.send)
	if s.conn != nil {
		_ = s.conn.CloseNow() // it may be closed
	}
	return s.refused
}

// socket writes the messages of one reader to a WebSocket.
type socket struct {
	*writing

	w    http.ResponseWriter
	r    *http.Request
	conn *websocket.Conn
	// left is called when the reader disconnects.
	left context.CancelFunc
	// refused is the problem of a request that is not a handshake.
	refused error
}

// accept accepts the handshake.
func (s *socket) accept() error {
	answer := &handshake{ResponseWriter: s.w}
	// A page of another origin needs a ticket or a token; see httpkit.
	conn, err := websocket.Accept(answer, s.r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		s.refused = httpkit.UpgradeRequired("want the handshake of a WebSocket of version 13: " + strings.TrimSpace(answer.reason))
		return err
	}
	s.conn = conn
	context.AfterFunc(s.r.Context(), func() {
		if errors.Is(context.Cause(s.r.Context()), httpkit.ErrRevoked) {
			_ = conn.CloseNow() // it may be closed, or blocked in a write
		}
	})
	go s.receive(conn)
	return nil
}

// receive handles the control frames of the reader until it disconnects. If the reader sends
// data, receive closes the connection.
func (s *socket) receive(conn *websocket.Conn) {
	// Conn.CloseRead would wait 15 s for itself.
	defer s.left()
	if _, _, err := conn.Reader(context.WithoutCancel(s.r.Context())); err == nil {
		_ = conn.Close(websocket.StatusPolicyViolation, "want no data") // it may be closed
	}
}

// handshake withholds the error response of a handshake from the client.
type handshake struct {
	http.ResponseWriter

	failed bool
	reason string
}

// WriteHeader implements http.ResponseWriter.
func (h *handshake) WriteHeader(status int) {
	if h.failed = status >= http.StatusBadRequest; !h.failed {
		h.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (h *handshake) Write(text []byte) (int, error) {
	if h.failed {
		h.reason += string(text)
		return len(text), nil
	}
	return h.ResponseWriter.Write(text) //nolint:wrapcheck // it is the same call
}

// Unwrap returns the wrapped ResponseWriter, for access to the connection.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// send writes the messages of a batch. After the last batch it closes the connection.
func (s *socket) send(b stream.Batch) error {
	if s.conn == nil {
		if err := s.accept(); err != nil {
			return err
		}
	}
	kept := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool has nothing else
	defer buffers.Put(kept)
	at := stream.Cursor{Epoch: b.Cursor.Epoch}
	for _, e := range b.Events {
		at.Position = e.Position
		*kept = appendEvent((*kept)[:0], at, e.Plain)
		if err := s.text(*kept); err != nil {
			return err
		}
	}
	message, ok := messageOf(b)
	if !ok {
		return nil
	}
	text, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot write a message: %w", err)
	}
	if err := s.text(text); err != nil || !b.End {
		return err
	}
	return s.conn.Close(websocket.StatusGoingAway, "connect again after "+strconv.FormatInt(message.RetryMS, 10)+" ms")
}

// text sends one message.
func (s *socket) text(message []byte) error {
	return s.write(func() error {
		// The final message is sent even if the request has ended.
		if err := s.conn.Write(context.WithoutCancel(s.r.Context()), websocket.MessageText, message); err != nil {
			return fmt.Errorf("cannot write to the reader: %w", err)
		}
		return nil
	})
}

// appendEvent appends a contract.StreamMessage with an event.
func appendEvent(text []byte, at stream.Cursor, plain []byte) []byte {
	text = append(append(append(text, `{"type":"`+contract.MessageEvent+`","id":"`...), at.String()...), `","event":`...)
	return append(append(text, plain...), '}')
}

// messageOf returns the message that follows the events of a batch. ok is false without one.
func messageOf(b stream.Batch) (m contract.StreamMessage, ok bool) {
	m.RetryMS = b.Retry.Milliseconds()
	if placed(b) {
		m.ID = b.Cursor.String()
	}
	switch {
	case b.End:
		m.Type = contract.MessageEnd
	case b.Gap != nil:
		gap := gapOf(*b.Gap)
		m.Type, m.Gap = contract.MessageGap, &gap
	case placed(b):
		m.Type = contract.MessageCursor
	}
	return m, m.Type != ""
}

// Messages returns the messages of a batch in the form that WebSockets send.
func Messages(b stream.Batch) (all [][]byte, err error) {
	at := stream.Cursor{Epoch: b.Cursor.Epoch}
	for _, e := range b.Events {
		at.Position = e.Position
		all = append(all, appendEvent(nil, at, e.Plain))
	}
	message, ok := messageOf(b)
	if !ok {
		return all, nil
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("cannot write a message: %w", err)
	}
	return append(all, text), nil
}
