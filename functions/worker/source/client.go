// Package source reads the entity API: GET /entities/{pi} and GET /cat/{cid}.
//
// Each thing is asked for until it is had, within limits: 429, 5xx, broken
// connections, answers that are cut short or do not come in time are tried
// again with full-jitter backoff; other answers are final. When the attempts
// are used up, the first manifest that was had is asked for again: if it can be
// had, the thing itself is at fault and is given up; if not, the source is down,
// and its return is awaited as long as Patience lasts. Bytes are checked
// against their CID where the CID allows it (see digestOf), and no answer may
// be larger than its limit. Nothing is kept in memory but one buffer for each
// request and the beginning of each entity's Spool.
//
// What was had is not asked for again, and errors say nothing about hosts.
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
)

// Clock tells the time and wakes its caller.
type Clock interface {
	Now() time.Time
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Limits bound one request. The zero value of each field is its default.
type Limits struct {
	Attempts       int           // 6; 2 more until the source has answered once
	AttemptTimeout time.Duration // 30 s, from asking to the last byte
	Patience       time.Duration // 2 min, over all attempts, an outage included
	FirstDelay     time.Duration // 250 ms, doubling
	LongestDelay   time.Duration // 8 s; a Retry-After may ask for 30 s
	Manifest       int64         // 32 MiB
}

func (l Limits) withDefaults() Limits {
	l.Attempts = orDefault(l.Attempts, 6)
	l.AttemptTimeout = orDefault(l.AttemptTimeout, 30*time.Second)
	l.Patience = orDefault(l.Patience, 2*time.Minute)
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

const longestRetryAfter = 30 * time.Second

var (
	errTooSlow = errors.New("the attempt took too long")
	errTooLong = errors.New("the answer is longer than its limit")
)

// Client reads one source. It may be used by many goroutines at once.
type Client struct {
	base   string
	http   *http.Client
	clock  Clock
	jitter func() float64
	log    *slog.Logger
	limits Limits
	// known is the path of the first manifest that was had: what can be asked
	// for to learn whether the source is up. Nil until then.
	known atomic.Pointer[string]
}

// New makes a client of the API at base, an address without a slash at its
// end. jitter gives numbers from 0 up to 1 and may be called from anywhere at
// once.
func New(base string, client *http.Client, clock Clock, jitter func() float64, log *slog.Logger, limits Limits) *Client {
	return &Client{
		base: strings.TrimRight(base, "/"), http: client, clock: clock, jitter: jitter, log: log,
		limits: limits.withDefaults(),
	}
}

// Manifest asks for an entity. The error is a *Failure, a *record.Gone, or the
// context's.
func (c *Client) Manifest(ctx context.Context, pi record.PI) (record.Manifest, error) {
	var m record.Manifest
	path := "/entities/" + pi.String()
	err := c.persist(ctx, "manifest", pi.String(), func(ctx context.Context) error {
		var body buffer
		if err := c.get(ctx, path, c.limits.Manifest, &body); err != nil {
			return err
		}
		var err error
		m, err = record.ParseManifest(pi, body)
		if errors.Is(err, record.ErrNotManifest) {
			return &Failure{Kind: Garbled, reason: "the answer is no manifest", cause: err}
		}
		return err
	})
	if err == nil {
		c.known.CompareAndSwap(nil, &path)
	}
	return m, err
}

// Component appends a component's bytes, limit at most, to the spool. On
// failure the spool is as it was. The error is a *Failure, the spool's, or the
// context's.
func (c *Client) Component(ctx context.Context, cid string, limit int64, to *Spool) error {
	if !plausibleCID(cid) {
		return &Failure{Kind: Refused, reason: "its CID is none"}
	}
	begin := to.Size()
	return c.persist(ctx, "component", cid, func(ctx context.Context) error {
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

// persist tries until it works, cannot work, or lasts too long.
func (c *Client) persist(ctx context.Context, what, name string, try func(context.Context) error) error {
	patience := c.clock.Now().Add(c.limits.Patience)
	awaited := false
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
			if awaited || f.Kind != Unavailable || !c.returned(ctx, patience) {
				return errors.Join(ctx.Err(), err)
			}
			awaited, attempt = true, 0
			continue
		}
		delay := c.delay(attempt, f.after)
		if c.clock.Now().Add(delay).After(patience) {
			return err
		}
		c.log.DebugContext(ctx, "asking again", "what", what, "name", name, "attempt", attempt, "why", f.Error(), "delay", delay)
		if err := Sleep(ctx, c.clock, delay); err != nil {
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

// returned asks for what is known to be there. It is true if the source was
// down and came back before patience ends; false if it is up, or stays down.
func (c *Client) returned(ctx context.Context, patience time.Time) bool {
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
		if c.clock.Now().Add(delay).After(patience) || Sleep(ctx, c.clock, delay) != nil {
			return false
		}
	}
}

// delay is the n-th pause: anything up to the doubled limit (full jitter), but
// not less than what the source asked for.
func (c *Client) delay(n int, asked time.Duration) time.Duration {
	longest := c.limits.LongestDelay
	if n < 16 {
		longest = min(longest, c.limits.FirstDelay<<(n-1))
	}
	return max(time.Duration(c.jitter()*float64(longest)), min(asked, longestRetryAfter))
}

// timed ends an attempt that lasts longer than AttemptTimeout.
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
		return &Failure{Kind: Refused, reason: "its address is none", cause: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fromTransport(err)
	}
	defer func() {
		// A little is read to the end so that the connection can be used again.
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

// answer remembers how reading ended, to tell the source's errors from the
// writer's.
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

// buffer is bytes in memory.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// Sleep waits for d, or for the end of the context, whose error it gives then.
func Sleep(ctx context.Context, clock Clock, d time.Duration) error {
	fired, stop := clock.NewTimer(d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
