package client

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

const (
	firstDelay    = 250 * time.Millisecond
	mostDelay     = 8 * time.Second
	mostAfter     = time.Minute // a longer delay is left to the caller
	mostAnswer    = 64 << 20
	jsonMediaType = "application/json"
)

var errTooLong = errors.New("the answer is too large")

// transport sends requests.
type transport struct {
	base    string
	token   string
	agent   string
	http    *http.Client
	timeout time.Duration
	retries int
	clock   clock.Clock
}

// call describes one request, which may be sent again.
type call struct {
	method, path string
	query        url.Values
	header       http.Header
	accept       string
	// body is encoded as JSON; content, or size bytes of reader, are sent as they are.
	body      any
	content   []byte
	reader    io.ReaderAt
	size      int64
	mediaType string
	// keyed adds an idempotency key. repeatable means that two requests have the effect of one.
	keyed, repeatable bool
	token             string
	timeout           time.Duration
	answered          *http.Header
	status            *int
	// presigned is the address of a download, which gets no token.
	presigned string
}

// prepare applies the options and encodes the body.
func (t *transport) prepare(what call, options []Option) (call, error) {
	for _, option := range options {
		option(&what)
	}
	if what.token == "" {
		what.token = t.token
	}
	if what.timeout <= 0 {
		what.timeout = t.timeout
	}
	header := http.Header{"User-Agent": {t.agent}, "Accept": {jsonMediaType}}
	if what.accept != "" {
		header.Set("Accept", what.accept)
	}
	maps.Copy(header, what.header)
	if what.keyed && header.Get("Idempotency-Key") == "" {
		header.Set("Idempotency-Key", crand.Text())
	}
	if what.body != nil {
		text, err := json.Marshal(what.body)
		if err != nil {
			return what, fmt.Errorf("cannot encode the request: %w", err)
		}
		what.content = text
	}
	if what.content != nil || what.reader != nil {
		header.Set("Content-Type", cmp.Or(what.mediaType, header.Get("Content-Type"), jsonMediaType))
	}
	if what.token != "" && what.presigned == "" {
		header.Set("Authorization", "Bearer "+what.token)
	}
	what.header = header
	switch what.method {
	case http.MethodGet, http.MethodHead:
		what.repeatable = true
	case http.MethodPut, http.MethodDelete:
		what.repeatable = what.repeatable || header.Get("If-Match") == "" && header.Get("If-None-Match") == ""
	}
	what.repeatable = what.repeatable || header.Get("Idempotency-Key") != ""
	return what, nil
}

func (t *transport) request(ctx context.Context, what call) (*http.Request, error) {
	address := t.base + what.path
	if len(what.query) > 0 {
		address += "?" + what.query.Encode()
	}
	if what.presigned != "" {
		address = what.presigned
	}
	var body io.Reader
	if what.content != nil {
		body = bytes.NewReader(what.content)
	}
	request, err := http.NewRequestWithContext(ctx, what.method, address, body)
	if err != nil {
		return nil, errors.New("cannot create the request: malformed path")
	}
	request.Header = what.header.Clone()
	if what.reader != nil && what.size > 0 {
		request.ContentLength = what.size
		request.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(what.reader, 0, what.size)), nil
		}
		request.Body, _ = request.GetBody() // has no error
	}
	return request, nil
}

// open sends a request once and returns its answer, whose body the caller closes.
func (t *transport) open(ctx context.Context, what call) (*http.Response, error) {
	request, err := t.request(ctx, what)
	if err != nil {
		return nil, err
	}
	response, err := t.http.Do(request)
	if err != nil {
		return nil, connectionError(ctx, request, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode != http.StatusFound || response.StatusCode == http.StatusFound && !what.redirects() {
		defer func() { _ = response.Body.Close() }()
		return nil, ErrorOf(response)
	}
	if what.answered != nil {
		*what.answered = response.Header
	}
	if what.status != nil {
		*what.status = response.StatusCode
	}
	return response, nil
}

func (c call) redirects() bool { return strings.HasPrefix(c.path, "/download/") }

func connectionError(ctx context.Context, request *http.Request, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent) {
		return context.Cause(ctx)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // its text has the query
	}
	return &ConnectionError{request.Method + " " + request.URL.Scheme + "://" + request.URL.Host + request.URL.Path, err}
}

// send sends a request, with retries, and returns the body of the answer.
func (t *transport) send(ctx context.Context, what call, options []Option) ([]byte, error) {
	what, err := t.prepare(what, options)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		text, err := t.once(ctx, what)
		if err == nil || attempt >= t.retries || !shouldRetry(what, err) || ctx.Err() != nil {
			return text, err
		}
		if err := clock.Sleep(ctx, t.clock, delayBefore(attempt, err)); err != nil {
			return nil, err
		}
	}
}

func (t *transport) once(ctx context.Context, what call) ([]byte, error) {
	limited, cancel := context.WithTimeoutCause(ctx, what.timeout, errSilent)
	defer cancel()
	response, err := t.open(limited, what)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	if err != nil {
		return nil, connectionError(limited, response.Request, err)
	}
	if len(text) > mostAnswer {
		return nil, &ConnectionError{what.method + " " + what.path, errTooLong}
	}
	return text, nil
}

// shouldRetry reports whether sending the request again may help and can do no harm.
func shouldRetry(what call, err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		if refused.RetryAfter > mostAfter {
			return false
		}
		return refused.Status == http.StatusTooManyRequests || what.repeatable && slices.Contains([]int{408, 425, 500, 502, 503, 504}, refused.Status)
	}
	failed, ok := errors.AsType[*ConnectionError](err)
	if !ok {
		return false
	}
	dial, ok := errors.AsType[*net.OpError](failed.Err)
	return what.repeatable || ok && dial.Op == "dial" // nothing was sent
}

// delayBefore returns the delay before a retry: full jitter, and no less than the server asks.
func delayBefore(attempt int, err error) time.Duration {
	bound := min(mostDelay, firstDelay<<min(attempt, 10))
	delay := rand.N(bound) //nolint:gosec // not a secret
	if refused, ok := errors.AsType[*Error](err); ok {
		delay = max(delay, refused.RetryAfter)
	}
	return delay
}

func sendJSON[T any](ctx context.Context, t *transport, what call, options []Option) (*T, error) {
	text, err := t.send(ctx, what, options)
	if err != nil {
		return nil, err
	}
	answer := new(T)
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, &ConnectionError{what.method + " " + what.path, errors.New("the answer is not a JSON object of the API")}
	}
	return answer, nil
}

func sendObject(ctx context.Context, t *transport, what call, options []Option) (map[string]any, error) {
	what.accept = "application/json, */*;q=0.5"
	answer, err := sendJSON[map[string]any](ctx, t, what, options)
	if err != nil {
		return nil, err
	}
	return *answer, nil
}

func sendText(ctx context.Context, t *transport, what call, options []Option) (string, error) {
	what.accept = "*/*"
	text, err := t.send(ctx, what, options)
	return string(text), err
}

func sendEmpty(ctx context.Context, t *transport, what call, options []Option) error {
	_, err := t.send(ctx, what, options)
	return err
}
