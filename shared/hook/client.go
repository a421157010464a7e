// Package hook sends JSON to addresses that users supply: webhooks, and hooks that
// allow or refuse a run.
//
// Post sends at most three requests, each over a connection of its own to an address
// that package guard permits, without a proxy and without following redirects. It reads
// at most 64 KiB of an answer. Errors and answers contain no secret and no part of a
// URL but its host.
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

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/hook/guard"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/retry"
)

// Limits of the time for one try.
const (
	MinTimeout     = time.Second
	MaxTimeout     = limit.HookTimeout
	DefaultTimeout = 10 * time.Second
)

// Tries is the largest number of tries of a message, with a pause of at most MaxPause
// between two of them.
const (
	Tries    = 3
	MaxPause = 5 * time.Second
)

// pauses are used where the receiver asks for no other one.
var pauses = retry.Backoff{First: 500 * time.Millisecond, Most: MaxPause, Multiplier: 4}

// Config configures a Client.
type Config struct {
	Policy guard.Policy
	// Clock limits tries and times the pauses between them.
	Clock clock.Clock
	// Resolver and RootCAs replace those of the host; for tests.
	Resolver *net.Resolver
	RootCAs  *x509.CertPool
}

// Client sends messages. It is safe for concurrent use.
type Client struct{ config Config }

// New returns a client.
func New(c Config) *Client { return &Client{c} }

// Message is one message.
type Message struct {
	URL     string
	Headers map[string]string
	// Body is a JSON document.
	Body []byte
	// Key signs the message. During a rotation Newer has the keys that replace it.
	Key   Key
	Newer []Key
	// ID identifies the message for its receiver, which may get it more than once. It
	// contains no dot.
	ID string
	// Timeout limits one try, MinTimeout to MaxTimeout; 0 is DefaultTimeout.
	Timeout time.Duration
}

// ErrNoTime is returned by Post if the context leaves no time for a request.
var ErrNoTime = errors.New("too little time for a request")

// reserve is the part of a caller's time that is left for what follows a request.
const reserve = time.Second

// Post sends the message until an answer allows or refuses, at most Tries times. If ctx
// has a deadline, the first try ends a second before it, and there is another try
// only if the whole time limit of it is left. The error is that of ctx, or ErrNoTime
// without a request if not even MinTimeout is left; every other failure is an
// Unavailable answer.
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

// left returns the time that ctx leaves for requests.
func (c *Client) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64
	}
	return deadline.Sub(c.config.Clock.Now()) - reserve
}

// check returns the target of a message, or why the policy does not permit it: the
// operator may have changed it after the URL was accepted.
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

// errTimeout ends a try.
var errTimeout = errors.New("time limit of a try")

// try sends one request. pause is what the receiver asks for before the next one.
func (c *Client) try(ctx context.Context, target guard.Target, m Message) (answer Answer, pause time.Duration, err error) {
	now := c.config.Clock.Now()
	status, header, body, err := c.send(ctx, c.transport(target, false), target, m, now)
	if err != nil {
		return Answer{}, 0, err
	}
	return answerOf(status, body), retry.After(header.Get("Retry-After"), now, MaxPause), nil
}

// send sends one request that is signed at now and reads the answer.
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
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err = io.ReadAll(io.LimitReader(response.Body, readLimit))
	if err != nil && ctx.Err() != nil {
		return 0, nil, nil, cause(ctx, err)
	}
	// The status decides even if the body is cut off.
	return response.StatusCode, response.Header, body, nil
}

// cause returns the reason for which ctx has ended, or else err.
func cause(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		return ended
	}
	return err
}

// transport connects to one target. Without a client above it, nothing follows a
// redirect or stores a cookie. reuse keeps a few connections for further requests.
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
