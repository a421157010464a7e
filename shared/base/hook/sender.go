package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/retry"
)

// A Sender keeps up to idleConnections open to a receiver for idleTime, for at most maxTargets
// receivers.
const (
	idleConnections = 4
	idleTime        = 20 * time.Second
	maxTargets      = 1000
)

// maxAsked is the longest pause that a receiver can request from a Sender.
const maxAsked = 24 * time.Hour

// Sender sends each message with a single try. It connects as a Client does, to addresses that
// the policy permits, but keeps connections open for further messages. It is safe for
// concurrent use.
type Sender struct {
	client *Client

	mu    sync.Mutex
	newer map[string]*http.Transport
	older map[string]*http.Transport
}

// NewSender returns a Sender.
func NewSender(c Config) *Sender {
	return &Sender{client: New(c), newer: map[string]*http.Transport{}, older: map[string]*http.Transport{}}
}

// Reply is the response to a message, or the reason for a missing response.
type Reply struct {
	// Status is the HTTP status; 0 without a response.
	Status int
	// Body is the start of the response body, at most limit.HookBody bytes of UTF-8.
	Body string
	// Problem says why there is no response, without any part of the URL except its host.
	// TimedOut: the response did not arrive in time. Refused: the address, or a header, is not
	// permitted.
	Problem           string
	TimedOut, Refused bool
	// RetryAfter is the pause that the receiver requests, at most a day; 0 without one.
	RetryAfter time.Duration
	// Latency is the time from the request to the end of the response.
	Latency time.Duration
}

// Send sends the message once, within its Timeout. The error is that of ctx.
func (s *Sender) Send(ctx context.Context, m Message) (Reply, error) {
	target, problem := s.client.check(m)
	if problem != "" {
		return Reply{Problem: problem, Refused: true}, nil
	}
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	now := s.client.config.Clock.Now()
	status, header, body, err := s.client.send(ctx, s.transport(target), target, m, now)
	latency := s.client.config.Clock.Now().Sub(now)
	if ctx.Err() != nil {
		return Reply{}, fmt.Errorf("a request to %s was interrupted: %w", target.Host, ctx.Err())
	}
	if err != nil {
		return Reply{
			Problem: describe(err, target, m.Timeout), TimedOut: errors.Is(err, errTimeout), Refused: errors.Is(err, guard.ErrNotPermitted), Latency: latency,
		}, nil
	}
	return Reply{
		Status: status, Body: limit.Cut(plain(string(body)), limit.HookBody), Latency: latency,
		RetryAfter: retry.After(header.Get("Retry-After"), now, maxAsked),
	}, nil
}

// transport returns the transport of a target. Transports that were not used for a while are
// closed: if there are too many, s.newer becomes s.older, and the previous s.older are closed.
func (s *Sender) transport(t guard.Target) *http.Transport {
	key := t.URL.Scheme + "://" + t.URL.Host
	s.mu.Lock()
	defer s.mu.Unlock()
	if over, ok := s.newer[key]; ok {
		return over
	}
	over, ok := s.older[key]
	if ok {
		delete(s.older, key)
	} else {
		over = s.client.transport(t, true)
	}
	if len(s.newer) >= maxTargets/2 {
		for _, unused := range s.older {
			unused.CloseIdleConnections()
		}
		s.newer, s.older = map[string]*http.Transport{}, s.newer
	}
	s.newer[key] = over
	return over
}
