package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/sortie-dev/sortie/local/twin/proof"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/client"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	pathEvents = "/v1/events"
	// signedEvents is the content type of events with their signatures.
	signedEvents = "application/vnd.dsse+x-ndjson"
	// longestEvent limits an event in a stream, in bytes.
	longestEvent = 1 << 20
	// longestPause limits the delay between two attempts to open a stream.
	longestPause = 30 * time.Second
)

// EventPage reads at most limit events after a cursor that match the filter; 0 means the
// server's limit.
func (c *Client) EventPage(ctx context.Context, filter url.Values, after string, limit int) (contract.EventPage, error) {
	return ask[contract.EventPage](ctx, c, call{method: http.MethodGet, path: pathEvents, query: pageQuery(filter, after, limit), repeat: true})
}

// SignedEvents reads events and checkpoints after a cursor, one per line. next equals after at
// the end of the stream.
func (c *Client) SignedEvents(ctx context.Context, after string) (lines []byte, next string, err error) {
	const most = 1000
	header, err := c.do(ctx, call{
		method: http.MethodGet, path: pathEvents, query: pageQuery(nil, after, most), repeat: true,
		header: http.Header{"Accept": {signedEvents}},
	}, &lines)
	return lines, header.Get("X-Next-Cursor"), err
}

func pageQuery(filter url.Values, after string, limit int) url.Values {
	query := url.Values{"after": {after}}
	maps.Copy(query, filter)
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return query
}

// FollowEvents calls each with the events that match the filter as they arrive, and with a gap
// if the stream no longer has the cursor's event. It reopens the stream where it ended. It
// stops when ctx ends or each returns an error, and returns that error. It sets *after to the
// cursor after the last message.
func (c *Client) FollowEvents(ctx context.Context, filter url.Values, after *string, each func(event json.RawMessage) error) error {
	for {
		err := c.retry(ctx, func() error {
			what := call{method: http.MethodGet, path: pathEvents + "/stream", query: pageQuery(filter, *after, 0)}
			return c.readStream(ctx, what, after, func(m sse.Event) error { return each(json.RawMessage(m.Data)) })
		})
		if err != nil {
			return err
		}
	}
}

// readStream reads a stream of events until it breaks or is silent for streamIdle. It sets
// *after to the id of the last event.
func (c *Client) readStream(ctx context.Context, what call, after *string, each func(sse.Event) error) error {
	open, cut := context.WithCancel(ctx)
	defer cut()
	idle := time.AfterFunc(streamIdle, cut)
	defer idle.Stop()
	req, err := c.api.NewRequest(open, what.request())
	if err != nil {
		return err
	}
	var failed error
	streams := sse.Client{
		HTTPClient: c.http,
		Backoff:    sse.Backoff{MaxInterval: longestPause},
		OnRetry: func(err error, _ time.Duration) {
			if other, ok := errors.AsType[*proof.Error](err); ok {
				failed = other
				cut()
				return
			}
			idle.Reset(streamIdle + longestPause)
			// The server itself ends a stream from time to time.
			if lost, ok := errors.AsType[*sse.ConnectionError](err); ok && c.onRetry != nil && !errors.Is(lost.Err, io.EOF) {
				c.onRetry(unreachable(req.URL, lost.Err))
			}
		},
		ResponseValidator: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				failed = sdk.ErrorOf(resp)
			} else if failed = sse.DefaultValidator(resp); failed != nil {
				failed = &Problem{Status: resp.StatusCode, Message: notSortie(c.base, resp.StatusCode), Foreign: true}
			}
			return failed
		},
	}
	connection := streams.NewConnection(req)
	connection.Buffer(nil, longestEvent)
	connection.SubscribeToAll(func(m sse.Event) {
		idle.Reset(streamIdle)
		switch {
		case open.Err() != nil: // the connection is being closed
		case m.Data != "" && !json.Valid([]byte(m.Data)): // the connection was cut within an event
			cut()
		default:
			if m.Data != "" {
				failed = each(m)
			}
			if failed != nil {
				cut()
			} else if m.LastEventID != "" {
				*after = m.LastEventID
			}
		}
	})
	stopProbing := c.probing(ctx)
	defer stopProbing()
	err = connection.Connect()
	switch {
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return ctx.Err()
	case open.Err() != nil:
		return nil // the caller reopens it
	}
	return fmt.Errorf("cannot follow the stream: %w", err)
}
