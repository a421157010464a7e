package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
)

// largestHeader is the largest header of a response, in bytes.
const largestHeader = 1 << 20

// streams sends each request over a connection of its own, which is closed with its response. A
// stream waits for tokens most of the time. The connections of http.Transport have two
// goroutines each, which would wait too.
type streams struct {
	dialer *net.Dialer
}

// RoundTrip implements http.RoundTripper for URLs with the scheme http.
func (s streams) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	conn, err := s.dialer.DialContext(ctx, "tcp", hostPort(req.URL))
	if err != nil {
		return nil, err //nolint:wrapcheck // as http.Transport does
	}
	b := &streamBody{conn: conn, unwatch: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	resp, err := b.exchange(req)
	if err != nil {
		_ = b.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return resp, nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// streamBody is the body of an answer with its connection.
type streamBody struct {
	io.Reader

	conn    net.Conn
	unwatch func() bool
}

// exchange sends a request and reads the header of its answer.
func (b *streamBody) exchange(req *http.Request) (*http.Response, error) {
	sent := writeRequest(b.conn, req)
	from := &io.LimitedReader{R: b.conn, N: largestHeader}
	buffered := bufio.NewReaderSize(from, connBuffer)
	resp, err := readHeader(buffered, req)
	switch {
	case err == nil: // perhaps before the whole request was sent
	case sent != nil:
		return nil, fmt.Errorf("cannot send the request: %w", sent)
	case from.N <= 0:
		return nil, fmt.Errorf("the header of the answer has more than %d bytes", largestHeader)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the connection ended before an answer")
	default:
		return nil, err
	}
	from.N = math.MaxInt64
	b.Reader, resp.Body = resp.Body, b
	return resp, nil
}

// writeRequest writes a request that is the only one of its connection.
func writeRequest(to io.Writer, req *http.Request) error {
	only := *req
	only.Close = true
	return only.Write(to) //nolint:wrapcheck // its caller does
}

// readHeader reads the header of the final response and skips interim responses.
func readHeader(from *bufio.Reader, req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(from, req) //nolint:bodyclose // streamBody closes the connection
		if err != nil || resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err //nolint:wrapcheck // its caller does
		}
	}
}

// Close closes the connection.
func (b *streamBody) Close() error {
	b.unwatch()
	return b.conn.Close() //nolint:wrapcheck // of the interface
}
