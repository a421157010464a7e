// Package source reads the entity API: GET /entities/{pi} and GET /cat/{cid}.
//
// 429, 5xx, broken connections, and truncated or late responses are retried with full-jitter
// backoff. Other responses are final. After the last attempt, the client requests the first
// manifest that it has read once more. If that succeeds, the requested object itself is at
// fault. If not, the source is down, and the client waits for it until RetryTimeout. Bytes are
// compared with their CID if the CID allows it (see digestOf), and no response may be larger
// than its limit. Memory is one buffer for each request and the first part of each entity's
// Spool.
//
// Errors do not contain hosts or URLs.
package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/functions/worker/record"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/retry"
)

// Limits limit one request. The zero value of each field means its default.
type Limits struct {
	Attempts       int           // 6; 2 more until the first answer
	AttemptTimeout time.Duration // 30 s, from the request to the last byte
	RetryTimeout   time.Duration // 2 min, over all attempts and an outage
	FirstDelay     time.Duration // 250 ms, doubling
	LongestDelay   time.Duration // 8 s; a Retry-After may ask for 30 s
	Manifest       int64         // 32 MiB
}

func (l Limits) withDefaults() Limits {
	l.Attempts = orDefault(l.Attempts, 6)
	l.AttemptTimeout = orDefault(l.AttemptTimeout, 30*time.Second)
	l.RetryTimeout = orDefault(l.RetryTimeout, 2*time.Minute)
	l.FirstDelay = orDefault(l.FirstDelay, 250*time.Millisecond)
	l.LongestDelay = orDefault(l.LongestDelay, 8*time.Second)
	l.Manifest = orDefault(l.Manifest, 32<<20)
	return l
}

func orDefault[T int | int64 | time.Duration](v, fallback T) T {
	if v == 0 {
		return fallback
	}
	return v
}

const maxRetryAfter = 30 * time.Second

var (
	errTooSlow = errors.New("the attempt took too long")
	errTooLong = errors.New("the answer is longer than its limit")
)

// Client reads one source. It is safe for concurrent use.
type Client struct {
	base   string
	http   *http.Client
	clock  clock.Clock
	jitter func() float64
	log    *slog.Logger
	limits Limits
	// known is the path of the first manifest that was read, for probing the source; nil until
	// then.
	known atomic.Pointer[string]
}

// New returns a client of the API at the URL base. jitter returns numbers in [0, 1)
// and must be safe for concurrent use.
func New(base string, client *http.Client, clock clock.Clock, jitter func() float64, log *slog.Logger, limits Limits) *Client {
	return &Client{
		base: strings.TrimRight(base, "/"), http: client, clock: clock, jitter: jitter, log: log,
		limits: limits.withDefaults(),
	}
}

// Manifest reads the manifest of an entity. The error is a *Failure, a *record.Gone, or that of
// the context.
func (c *Client) Manifest(ctx context.Context, pi record.PI) (record.Manifest, error) {
	var m record.Manifest
	path := "/entities/" + pi.String()
	err := c.retry(ctx, "manifest", pi.String(), func(ctx context.Context) error {
		var body buffer
		if err := c.get(ctx, path, c.limits.Manifest, &body); err != nil {
			return err
		}
		var err error
		m, err = record.ParseManifest(pi, body)
		if errors.Is(err, record.ErrNotManifest) {
			return &Failure{Kind: Garbled, reason: "the answer is not a manifest", cause: err}
		}
		return err
	})
	if err == nil {
		c.known.CompareAndSwap(nil, &path)
	}
	return m, err
}

// Component appends at most limit bytes of a component to the spool. On failure the spool is
// unchanged. The error is a *Failure, or that of the spool or the context.
func (c *Client) Component(ctx context.Context, cid string, limit int64, to *Spool) error {
	if !plausibleCID(cid) {
		return &Failure{Kind: Refused, reason: "malformed CID"}
	}
	begin := to.Size()
	return c.retry(ctx, "component", cid, func(ctx context.Context) error {
		sum := sha256.New()
		err := c.get(ctx, "/cat/"+cid, limit, io.MultiWriter(to, sum))
		if err == nil && !matches(cid, sum.Sum(nil)) {
			err = &Failure{Kind: Corrupt, reason: "its bytes do not match its CID"}
		}
		if err != nil {
			to.Cut(begin)
		}
		return err
	})
}

// retry calls try until it succeeds, fails permanently, or RetryTimeout has passed.
func (c *Client) retry(ctx context.Context, what, name string, try func(context.Context) error) error {
	until := c.clock.Now().Add(c.limits.RetryTimeout)
	waited := false
	for attempt := 1; ; attempt++ {
		err := c.timed(ctx, try)
		if err == nil || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		f, ok := errors.AsType[*Failure](err)
		if !ok || !f.retryable() {
			return err
		}
		if attempt >= f.attempts(c.attempts()) {
			if waited || f.Kind != Unavailable || !c.recovered(ctx, until) {
				return errors.Join(ctx.Err(), err)
			}
			waited, attempt = true, 0
			continue
		}
		delay := c.delay(attempt, f.after)
		if c.clock.Now().Add(delay).After(until) {
			return err
		}
		c.log.DebugContext(ctx, "retrying", "what", what, "name", name, "attempt", attempt, "why", f.Error(), "delay", delay)
		if err := clock.Sleep(ctx, c.clock, delay); err != nil {
			return err
		}
	}
}

func (c *Client) attempts() int {
	if c.known.Load() == nil {
		return c.limits.Attempts + 2
	}
	return c.limits.Attempts
}

// recovered probes the source. It returns true if the source was down and has recovered before
// until. It returns false if the source was up or is still down.
func (c *Client) recovered(ctx context.Context, until time.Time) bool {
	known := c.known.Load()
	if known == nil {
		return false
	}
	for n := 1; ; n++ {
		err := c.timed(ctx, func(ctx context.Context) error { return c.get(ctx, *known, c.limits.Manifest, io.Discard) })
		if KindOf(err) != Unavailable || ctx.Err() != nil {
			return n > 1 && ctx.Err() == nil
		}
		delay := c.delay(n, 0)
		if c.clock.Now().Add(delay).After(until) || clock.Sleep(ctx, c.clock, delay) != nil {
			return false
		}
	}
}

// delay returns the delay before retry n: full jitter under a limit that doubles, and at least
// the source's Retry-After.
func (c *Client) delay(n int, retryAfter time.Duration) time.Duration {
	bound := retry.Backoff{First: c.limits.FirstDelay, Most: c.limits.LongestDelay, Multiplier: 2}.Delay(n - 1)
	return max(time.Duration(c.jitter()*float64(bound)), retryAfter)
}

// timed calls try with AttemptTimeout as its limit.
func (c *Client) timed(ctx context.Context, try func(context.Context) error) error {
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fired, stop := c.clock.NewTimer(c.limits.AttemptTimeout)
	defer stop()
	go func() {
		select {
		case <-fired:
			cancel(errTooSlow)
		case <-attempt.Done():
		}
	}()
	err := try(attempt)
	if err != nil && errors.Is(context.Cause(attempt), errTooSlow) && ctx.Err() == nil {
		return fromTransport(errTooSlow)
	}
	return err
}

func (c *Client) get(ctx context.Context, path string, limit int64, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return &Failure{Kind: Refused, reason: "malformed URL", cause: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fromTransport(err)
	}
	defer func() {
		// Read a short remainder, so that the connection can be reused.
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
		_ = resp.Body.Close()
	}()
	if resp.StatusCode != http.StatusOK {
		return fromStatus(resp, c.clock.Now())
	}
	if resp.ContentLength > limit {
		return &Failure{Kind: TooLarge, reason: "it is too large", cause: errTooLong}
	}
	body := &answer{from: resp.Body}
	n, err := io.Copy(to, io.LimitReader(body, limit+1))
	switch {
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return &Failure{Kind: Unavailable, reason: "the answer was cut short", cause: body.err}
	case err != nil:
		return err // of the writer
	case n > limit:
		return &Failure{Kind: TooLarge, reason: "it is too large", cause: errTooLong}
	}
	return nil
}

// answer stores the error of reading, to distinguish it from that of the writer.
type answer struct {
	from io.Reader
	err  error
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if err != nil {
		a.err = err
	}
	return n, err
}

// buffer collects bytes in memory.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
