package outside

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Message is a message of Server-Sent Events, as in the HTML standard.
type Message struct {
	ID, Event, Data string
	// Retry is the reconnection time in milliseconds; empty means unchanged.
	Retry string
}

// Stream is an open stream of events.
type Stream struct {
	Status int
	Header http.Header
	// Problem is set if Status is not 200.
	Problem contract.Problem

	body  io.ReadCloser
	lines *bufio.Reader
}

// Open opens a stream of events. headers alternates names and values; an empty value removes
// the header. The end of ctx closes the connection. It reads at most limit bytes; 0 means no
// limit.
func (c *Client) Open(ctx context.Context, path string, limit int64, headers ...string) (*Stream, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := wire.RoundTrip(r) //nolint:bodyclose // Stream.Close does
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	s := &Stream{Status: answer.StatusCode, Header: answer.Header, body: answer.Body}
	if s.Status != http.StatusOK {
		defer s.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, fmt.Errorf("cannot read the answer of %s: %w", path, err)
		}
		if len(text) > 0 {
			s.Problem = Decode[contract.Problem](c.T, text)
		}
		return s, nil
	}
	var from io.Reader = answer.Body
	if limit > 0 {
		from = io.LimitReader(from, limit)
	}
	s.lines = bufio.NewReader(from)
	return s, nil
}

// Close closes the connection.
func (s *Stream) Close() { _ = s.body.Close() }

// Next returns the next complete message. It returns io.EOF at the end of the stream, and
// otherwise the error of the connection.
func (s *Stream) Next() (m Message, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return Message{}, err // an incomplete message does not count
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return m, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			m.ID = value
		case "event":
			m.Event = value
		case "data":
			m.Data += value
		case "retry":
			m.Retry = value
		case "": // a comment
		default:
			return Message{}, fmt.Errorf("got the field %q, want id, event, data or retry", name)
		}
	}
}
