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
)

const (
	// answerTime is how long an answer may take beyond what was asked to wait.
	answerTime = 30 * time.Second
	// answerLimit bounds an answer, in bytes.
	answerLimit = 32 << 20
)

// call is one request for a JSON answer.
type call struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   any
	// wait is how long the server was asked to wait.
	wait time.Duration
	// repeat says that the call may be made again.
	repeat bool
}

// do makes the call, again as long as that may help, and reads the answer into
// to: JSON, or as it is into a *[]byte. It gives the last answer's header.
func (c *Client) do(ctx context.Context, what call, to any) (http.Header, error) {
	var header http.Header
	once := func() (err error) {
		header, err = c.once(ctx, what, to)
		return err
	}
	if !what.repeat {
		return header, once()
	}
	return header, c.bear(ctx, once)
}

func (c *Client) once(ctx context.Context, what call, to any) (http.Header, error) {
	timed, cancel := context.WithTimeout(ctx, answerTime+what.wait)
	defer cancel()
	req, err := c.request(timed, what)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(ctx, req.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.Header, problem(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return resp.Header, c.broken(ctx, req.URL, err)
	}
	if raw, ok := to.(*[]byte); ok {
		*raw = text
		return resp.Header, nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return resp.Header, &Problem{
			Status: resp.StatusCode, CorrelationID: resp.Header.Get("X-Correlation-Id"),
			Message: "the answer is none of Sortie's; is the URL right?",
		}
	}
	return resp.Header, nil
}

// broken tells the caller's own end from the server's.
func (c *Client) broken(ctx context.Context, target *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unreachable(target, err)
}

func (c *Client) request(ctx context.Context, what call) (*http.Request, error) {
	var body io.Reader
	if what.body != nil {
		text, err := json.Marshal(what.body)
		if err != nil {
			return nil, fmt.Errorf("cannot write the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	target := c.base.JoinPath(what.path)
	target.RawQuery = what.query.Encode()
	req, err := http.NewRequestWithContext(ctx, what.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}
	maps.Copy(req.Header, what.header)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if c.agent != "" {
		req.Header.Set("User-Agent", c.agent)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// bear repeats do while it fails in a way that passes, and patience lasts.
func (c *Client) bear(ctx context.Context, do func() error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 200*time.Millisecond, 5*time.Second
	var since time.Time
	for {
		err := do()
		least, passes := passing(err)
		if !passes || c.patience <= 0 {
			return err
		}
		now := c.clock.Now()
		if since.IsZero() {
			since = now
		}
		pause := max(least, pauses.NextBackOff())
		if now.Add(pause).Sub(since) > c.patience {
			return err
		}
		if c.trouble != nil {
			c.trouble(err)
		}
		if err := c.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// passing says whether a failure may pass by itself, and how long the server
// asks to wait for that.
func passing(err error) (least time.Duration, passes bool) {
	if _, ok := errors.AsType[*Unreachable](err); ok {
		return 0, true
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return 0, false
	}
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return p.RetryAfter, true
	}
	return 0, false
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	over, stop := c.clock.NewTimer(d)
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
