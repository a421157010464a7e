package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/sortie-dev/sortie/local/twin/proof"
)

const (
	// answerTime limits a call, beyond the wait that the call requests.
	answerTime = 30 * time.Second
	// answerLimit limits a response body, in bytes.
	answerLimit = 32 << 20
)

// call describes one request.
type call struct {
	method string
	path   string
	query  url.Values
	header http.Header
	// body is sent as JSON. raw is sent unchanged, with the content type of the header.
	body any
	raw  []byte
	// file is streamed as the body instead; size is its length.
	file io.ReaderAt
	size int64
	// wait is the time for which the server may delay the response.
	wait time.Duration
	// repeat means that the call is safe to repeat.
	repeat bool
	// status receives the status of a success, unless it is nil.
	status *int
}

// do sends the request, with retries if it is safe to repeat, and decodes the
// response into to: as JSON, or unchanged into a *[]byte. It returns the header
// of the last response.
func (c *Client) do(ctx context.Context, what call, to any) (http.Header, error) {
	var header http.Header
	once := func() (err error) {
		header, err = c.once(ctx, what, to)
		return err
	}
	if !what.repeat {
		return header, once()
	}
	return header, c.retry(ctx, once)
}

// ask is do with the type of the response.
func ask[T any](ctx context.Context, c *Client, what call) (response T, err error) {
	_, err = c.do(ctx, what, &response)
	return response, err
}

func (c *Client) once(ctx context.Context, what call, to any) (http.Header, error) {
	timed, cancel := context.WithTimeout(ctx, answerTime+what.wait)
	defer cancel()
	req, err := c.request(timed, what)
	if err != nil {
		return nil, err
	}
	stopProbing := c.probing(ctx)
	defer stopProbing()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failure(ctx, req.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.Header, problem(resp)
	}
	c.contacted()
	if what.status != nil {
		*what.status = resp.StatusCode
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return resp.Header, c.failure(ctx, req.URL, err)
	}
	if raw, ok := to.(*[]byte); ok {
		*raw = text
		return resp.Header, nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return resp.Header, &Problem{
			Status: resp.StatusCode, CorrelationID: resp.Header.Get("X-Correlation-Id"),
			Message: notSortie(resp), Foreign: true,
		}
	}
	return resp.Header, nil
}

// failure returns the error of ctx if ctx has ended, *proof.Error for an unexpected server, and
// otherwise *Unreachable.
func (c *Client) failure(ctx context.Context, target *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if other, ok := errors.AsType[*proof.Error](err); ok {
		return other
	}
	return unreachable(target, err)
}

func (c *Client) request(ctx context.Context, what call) (*http.Request, error) {
	text := what.raw
	if what.body != nil {
		var err error
		if text, err = json.Marshal(what.body); err != nil {
			return nil, fmt.Errorf("cannot encode the request: %w", err)
		}
	}
	var body io.Reader
	if text != nil {
		body = bytes.NewReader(text)
	}
	if what.file != nil {
		body = io.NewSectionReader(what.file, 0, what.size)
	}
	target := c.base.JoinPath(what.path)
	target.RawQuery = what.query.Encode()
	req, err := http.NewRequestWithContext(ctx, what.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("cannot create the request: %w", err)
	}
	if what.file != nil {
		req.ContentLength = what.size
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	maps.Copy(req.Header, what.header)
	if what.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.agent != "" {
		req.Header.Set("User-Agent", c.agent)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// retry repeats do while it fails temporarily, for at most c.outage.
func (c *Client) retry(ctx context.Context, do func() error) error {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval = 200*time.Millisecond, 5*time.Second
	var since time.Time
	for {
		err := do()
		least, temporary := retryable(err)
		if !temporary || c.outage <= 0 {
			return err
		}
		now := c.clock.Now()
		if since.IsZero() {
			since = now
		}
		delay := max(least, delays.NextBackOff())
		if now.Add(delay).Sub(since) > c.outage {
			return err
		}
		if c.onRetry != nil {
			c.onRetry(err)
		}
		if err := c.sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// retryable reports whether a failure is temporary, and the shortest delay that
// the server asks for.
func retryable(err error) (least time.Duration, temporary bool) {
	if _, ok := errors.AsType[*Unreachable](err); ok {
		return 0, true
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return 0, false
	}
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return p.RetryAfter, !p.Final
	}
	return 0, false
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	fired, stop := c.clock.NewTimer(d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
