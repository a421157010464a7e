package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/local/twin/proof"
	"github.com/sortie-dev/sortie/shared/base/clock"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/client"
)

// answerTime limits a call, beyond the wait that the call requests.
const answerTime = 30 * time.Second

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

// request returns the request of the Go client.
func (w call) request() sdk.Request {
	header := http.Header{"Accept": {"application/json, */*;q=0.5"}}
	maps.Copy(header, w.header)
	r := sdk.Request{
		Method: w.method, Path: (&url.URL{Path: "/"}).JoinPath(w.path).EscapedPath(), Query: w.query, Header: header,
		Body: w.body, Content: w.file, Size: w.size,
	}
	if w.raw != nil {
		r.Content, r.Size = bytes.NewReader(w.raw), int64(len(w.raw))
	}
	return r
}

// do sends the request, with retries if it is safe to repeat, and decodes the
// response into to: as JSON, or unchanged into a *[]byte. It returns the header
// of the last response.
func (c *Client) do(ctx context.Context, what call, to any) (header http.Header, err error) {
	once := func() (err error) {
		header, err = c.once(ctx, what, to)
		return err
	}
	if what.repeat {
		return header, c.retry(ctx, once)
	}
	err = once()
	return header, c.failure(ctx, err)
}

// ask is do with the type of the response.
func ask[T any](ctx context.Context, c *Client, what call) (response T, err error) {
	_, err = c.do(ctx, what, &response)
	return response, err
}

// once sends the request once. Its errors are those of the Go client.
func (c *Client) once(ctx context.Context, what call, to any) (http.Header, error) {
	stopProbing := c.probing(ctx)
	defer stopProbing()
	answer, err := c.api.Do(ctx, what.request(), sdk.WithTimeout(answerTime+what.wait))
	if err != nil {
		return nil, err
	}
	c.contacted()
	if what.status != nil {
		*what.status = answer.Status
	}
	if raw, ok := to.(*[]byte); ok {
		*raw = answer.Body
		return answer.Header, nil
	}
	if err := answer.Decode(to); err != nil {
		return answer.Header, &Problem{
			Status: answer.Status, CorrelationID: answer.Header.Get("X-Correlation-Id"),
			Message: notSortie(c.base, answer.Status), Foreign: true,
		}
	}
	return answer.Header, nil
}

// elsewhere is a failure of a server that the Go client did not call itself.
type elsewhere struct {
	// shown is the error for the caller. cause decides whether to retry.
	shown, cause error
}

func (e *elsewhere) Error() string { return e.shown.Error() }

// Unwrap returns the cause.
func (e *elsewhere) Unwrap() error { return e.cause }

// lost returns the failure of a request to a target.
func lost(ctx context.Context, target *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cause := &sdk.ConnectionError{Request: target.Host, Err: err}
	if other, ok := errors.AsType[*proof.Error](err); ok {
		return &elsewhere{other, cause}
	}
	return &elsewhere{unreachable(target, err), cause}
}

// failure returns *Problem for an error response. For a call without a response it returns the
// error of ctx if ctx has ended, *proof.Error for an unexpected server, and otherwise
// *Unreachable. It returns other errors unchanged.
func (c *Client) failure(ctx context.Context, err error) error {
	if other, ok := errors.AsType[*elsewhere](err); ok {
		return other.shown
	}
	if refused, ok := errors.AsType[*sdk.Error](err); ok {
		return problem(c.base, refused)
	}
	lost, ok := errors.AsType[*sdk.ConnectionError](err)
	switch {
	case ctx.Err() != nil && (ok || err != nil && errors.Is(err, context.Cause(ctx))):
		return ctx.Err()
	case !ok:
		return err
	}
	if other, ok := errors.AsType[*proof.Error](err); ok {
		return other
	}
	if lost.Timeout() {
		return unreachable(c.base, context.DeadlineExceeded)
	}
	return unreachable(c.base, lost.Err)
}

// retry repeats do while it fails temporarily, for at most c.outage. do returns errors of the
// Go client, and retry those of failure.
func (c *Client) retry(ctx context.Context, do func() error) error {
	return c.failure(ctx, c.api.Retry(ctx, c.policy(ctx), do))
}

func (c *Client) policy(ctx context.Context) sdk.Outage {
	return sdk.Outage{
		Limit: c.outage,
		Final: func(err error) bool {
			_, other := errors.AsType[*proof.Error](err)
			return other
		},
		OnRetry: func(err error) {
			if c.onRetry != nil {
				c.onRetry(c.failure(ctx, err))
			}
		},
	}
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, c.clock, d)
}
