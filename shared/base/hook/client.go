// Package hook sends JSON to user-supplied addresses: webhooks, and hooks that allow or refuse
// a run.
//
// Post sends at most three requests. Each uses its own connection to an address that package
// guard permits, without a proxy and without following redirects. It reads at most 64 KiB of a
// response. Errors and answers contain no secret, and no part of a URL except its host.
package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/retry"
)

// Time limits of one try.
const (
	MinTimeout     = time.Second
	MaxTimeout     = limit.HookTimeout
	DefaultTimeout = 10 * time.Second
)

// Tries is the maximum number of tries of a message, and MaxPause the longest pause between two
// tries.
const (
	Tries    = 3
	MaxPause = 5 * time.Second
)

// pauses are used if the receiver does not request a pause.
var pauses = retry.Backoff{First: 500 * time.Millisecond, Most: MaxPause, Multiplier: 4}

// Config configures a Client.
type Config struct {
	Policy guard.Policy
	// Clock is used for the time limits of tries and the pauses between them.
	Clock clock.Clock
	// Resolver and RootCAs replace those of the host in tests.
	Resolver *net.Resolver
	RootCAs  *x509.CertPool
}

// Client sends messages. It is safe for concurrent use.
type Client struct{ config Config }

// New returns a client.
func New(c Config) *Client { return &Client{c} }

// Message is a message to a receiver.
type Message struct {
	URL     string
	Headers map[string]string
	// Body is a JSON document.
	Body []byte
	// Key signs the message. Newer are the keys that replace Key during a rotation.
	Key   Key
	Newer []Key
	// ID identifies the message for its receiver, which may receive it more than once. It must
	// not contain a dot.
	ID string
	// Timeout limits one try: MinTimeout to MaxTimeout; 0 means DefaultTimeout.
	Timeout time.Duration
}

// ErrNoTime is returned by Post if the context has too little time left for a request.
var ErrNoTime = errors.New("too little time for a request")

// reserve is the part of the caller's time that is kept for the work after a request.
const reserve = time.Second

// Post sends the message until an answer allows or refuses, at most Tries times. If ctx has a
// deadline, the first try ends a second before it. Another try is made only if its whole time
// limit is left. The error is that of ctx, or ErrNoTime if less than MinTimeout is left for the
// first request. Every other failure is an Unavailable answer.
func (c *Client) Post(ctx context.Context, m Message) (Answer, error) {
	target, problem := c.check(m)
	if problem != "" {
		return Answer{Verdict: Unavailable, Detail: problem}, nil
	}
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	m.Timeout = min(max(m.Timeout, MinTimeout), MaxTimeout)
	left := c.left(ctx)
	if left < MinTimeout {
		return Answer{}, fmt.Errorf("%w to %s: %v", ErrNoTime, target.Host, left)
	}
	m.Timeout = min(m.Timeout, left)
	for try := 1; ; try++ {
		answer, pause, err := c.try(ctx, target, m)
		if ctx.Err() != nil {
			return Answer{}, fmt.Errorf("a request to %s was interrupted: %w", target.Host, ctx.Err())
		}
		if err != nil {
			answer = Answer{Verdict: Unavailable, Detail: describe(err, target, m.Timeout)}
		}
		answer.Tries = try
		if answer.Verdict != Unavailable || try == Tries || errors.Is(err, guard.ErrNotPermitted) {
			return answer, nil
		}
		if pause == 0 {
			pause = pauses.Delay(try - 1)
		}
		if c.left(ctx) < pause+m.Timeout {
			return answer, nil
		}
		if err := clock.Sleep(ctx, c.config.Clock, pause); err != nil {
			return Answer{}, fmt.Errorf("a request to %s was interrupted: %w", target.Host, err)
		}
	}
}

// left returns the time that ctx leaves for requests, without the reserve.
func (c *Client) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64
	}
	return deadline.Sub(c.config.Clock.Now()) - reserve
}

// check returns the target of a message, or the problem if the policy does not permit it. The
// operator may have changed the policy after the URL was accepted.
func (c *Client) check(m Message) (t guard.Target, problem string) {
	t, err := c.config.Policy.Target(m.URL)
	if err != nil {
		return t, err.Error()
	}
	for name, wrong := range guard.CheckHeaders(m.Headers) {
		problem = fmt.Sprintf("header %q: %s", name, wrong)
	}
	return t, problem
}

// errTimeout is the cause of a try that reaches its time limit.
var errTimeout = errors.New("time limit of a try")

// try sends one request. pause is the pause that the receiver requests before the next try; 0
// without one.
func (c *Client) try(ctx context.Context, target guard.Target, m Message) (answer Answer, pause time.Duration, err error) {
	now := c.config.Clock.Now()
	status, header, body, err := c.send(ctx, c.transport(target, false), target, m, now)
	if err != nil {
		return Answer{}, 0, err
	}
	return answerOf(status, body), retry.After(header.Get("Retry-After"), now, MaxPause), nil
}

// send sends one request, signed at the time now, and reads the response.
func (c *Client) send(
	ctx context.Context, over *http.Transport, target guard.Target, m Message, now time.Time,
) (status int, header http.Header, body []byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	expired, stop := c.config.Clock.NewTimer(m.Timeout)
	defer stop()
	go func() {
		select {
		case <-expired:
			cancel(errTimeout)
		case <-ctx.Done():
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.URL.String(), bytes.NewReader(m.Body))
	if err != nil {
		return 0, nil, nil, err
	}
	for name, value := range m.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "sortie")
	m.Key.Sign(request.Header, m.ID, now, m.Body, m.Newer...)
	response, err := over.RoundTrip(request)
	if err != nil {
		return 0, nil, nil, cause(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // the body was only read
	body, err = io.ReadAll(io.LimitReader(response.Body, readLimit))
	// A receiver may end its response when the request is cut off.
	if ctx.Err() != nil {
		return 0, nil, nil, cause(ctx, err)
	}
	// The status is decisive even if the body is cut off.
	return response.StatusCode, response.Header, body, nil
}

// cause returns the cause of the end of ctx, or else err.
func cause(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		return ended
	}
	return err
}

// transport returns a transport to one target. It is used without an http.Client, so that no
// redirect is followed and no cookie stored. reuse keeps idle connections for further requests.
func (c *Client) transport(target guard.Target, reuse bool) *http.Transport {
	dialer := &net.Dialer{Control: c.config.Policy.Control(target), Resolver: c.config.Resolver, KeepAlive: -1}
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, DisableKeepAlives: !reuse, DisableCompression: true,
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTime,
		MaxResponseHeaderBytes: 16 << 10,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.config.RootCAs},
	}
}

// describe says why there is no answer, without details of the network.
func describe(err error, target guard.Target, timeout time.Duration) string {
	host := target.Host
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("host %s has no address", host)
	}
	_, invalid := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Sprintf("no answer from %s within %v", host, timeout)
	case errors.Is(err, guard.ErrNotPermitted):
		return fmt.Sprintf("host %s has an address that is not public and that the operator does not permit", host)
	case invalid:
		return fmt.Sprintf("certificate of %s is not valid for it", host)
	}
	return fmt.Sprintf("connection to %s failed", host)
}
