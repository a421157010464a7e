package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// Request is a request of the API for Client.Do, Client.Open and Client.NewRequest. They are for
// programs that decode answers into types of their own.
type Request struct {
	Method string
	// Path begins with a slash. Its parts are escaped.
	Path   string
	Query  url.Values
	Header http.Header
	// Body is sent as JSON. If it is nil, Size bytes of Content are sent as they are, with the
	// Content-Type of Header. If both are nil, the request has no body.
	Body    any
	Content io.ReaderAt
	Size    int64
	// Repeatable means that sending the request twice has the effect of sending it once. Reads,
	// PUT and DELETE without a precondition, and requests with an Idempotency-Key always are.
	Repeatable bool
}

func (r Request) call() call {
	return call{
		method: r.Method, path: r.Path, query: r.Query, header: r.Header.Clone(), body: r.Body,
		reader: r.Content, size: r.Size, repeatable: r.Repeatable,
	}
}

// Answer is the answer to a request that succeeded.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode decodes the body, which must be JSON.
func (a *Answer) Decode(to any) error {
	if err := json.Unmarshal(a.Body, to); err != nil {
		return errors.New("the answer is not JSON of the API")
	}
	return nil
}

// Do sends a request and returns its answer, with the errors, retries and headers of the other
// methods.
func (c *Client) Do(ctx context.Context, r Request, options ...Option) (*Answer, error) {
	answer := &Answer{}
	what := r.call()
	what.answered, what.status = &answer.Header, &answer.Status
	var err error
	if answer.Body, err = c.transport.send(ctx, what, options); err != nil {
		return nil, err
	}
	return answer, nil
}

// Open sends a request once and returns its answer, whose body the caller reads and closes.
// WithTimeout limits the time without a byte; without it only ctx limits the request. Failed
// reads of the body return a *ConnectionError.
func (c *Client) Open(ctx context.Context, r Request, options ...Option) (*http.Response, error) {
	what := r.call()
	what.timeout = unlimited
	what, err := c.transport.prepare(what, options)
	if err != nil {
		return nil, err
	}
	return c.transport.stream(ctx, what, what.timeout)
}

// NewRequest returns the HTTP request that Do would send, with the token and the other headers.
// It sends nothing.
func (c *Client) NewRequest(ctx context.Context, r Request, options ...Option) (*http.Request, error) {
	what, err := c.transport.prepare(r.call(), options)
	if err != nil {
		return nil, err
	}
	return c.transport.request(ctx, what)
}
