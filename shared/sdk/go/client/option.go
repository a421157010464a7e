package client

import (
	"net/http"
	"strconv"
	"time"
)

// Option changes one call.
type Option func(*call)

// WithIdempotencyKey sets the key that identifies a creation or a retry. Without it the client
// makes one for each call.
func WithIdempotencyKey(key string) Option { return WithHeader("Idempotency-Key", key) }

// WithIfMatch changes a resource only if its version has this entity tag.
func WithIfMatch(etag string) Option { return WithHeader("If-Match", etag) }

// WithCreateOnly refuses to replace a resource that exists.
func WithCreateOnly() Option { return WithHeader("If-None-Match", "*") }

// WithDeadline sets how long an inference task may take.
func WithDeadline(d time.Duration) Option {
	return WithHeader("X-Deadline-Ms", strconv.FormatInt(d.Milliseconds(), 10))
}

// WithHeader sets a header of the request.
func WithHeader(name, value string) Option {
	return func(c *call) {
		if c.header == nil {
			c.header = http.Header{}
		}
		c.header.Set(name, value)
	}
}

// WithToken sends another token: the calls of Client.Workers take that of an attempt.
func WithToken(token string) Option { return func(c *call) { c.token = token } }

// WithTimeout replaces Config.Timeout.
func WithTimeout(d time.Duration) Option { return func(c *call) { c.timeout = d } }

// WithResponseHeader stores the header of a successful answer, for example its ETag.
func WithResponseHeader(to *http.Header) Option { return func(c *call) { c.answered = to } }
