// Package otlp exports the traces of runs by OTLP over HTTP.
//
// Committed adds a commit to a bounded queue and returns at once. Its spans are created and
// sent later. A full queue drops the newest commit. A commit that the collector refuses, or
// that fails in several tries, is dropped. The spans of a commit have the same ids whenever
// they are sent, so repeated spans are duplicates of the first. Dropped commits are counted and
// logged.
package otlp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/trace"
	"github.com/sortie-dev/sortie/shared/port"
)

// Limits of the queue, in commits.
const (
	queueLimit = 4096
	batchLimit = 128
)

// tries is how often a batch is sent. The pause after the first failure is firstPause; it
// doubles up to lastPause.
const (
	tries      = 5
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// Config configures an Exporter.
type Config struct {
	otel.Config
	// Version is the attribute service.version; empty omits it.
	Version string
	// Secrets, if set, returns the headers of each request and replaces Headers.
	Secrets func(context.Context) (map[string]string, error)
	Clock   clock.Clock
	Log     *slog.Logger
}

// Exporter exports commits. It is safe for concurrent use.
type Exporter struct {
	config Config
	client *http.Client
	// wake receives a value after a commit. Only the goroutine that has put a value into
	// sending may send.
	wake, sending chan struct{}

	mu      sync.Mutex
	queue   []commit
	dropped int
	// failures is the number of failed tries of the first batch, which is not sent before
	// retryAt.
	failures int
	retryAt  time.Time
}

var _ port.Traces = (*Exporter)(nil)

type commit struct {
	run    run.Run
	events []run.Event
}

// New returns an Exporter to the endpoint of the configuration. It makes no call.
func New(c Config) *Exporter {
	if c.Version != "" && c.Resource["service.version"] == "" {
		c.Resource = maps.Clone(c.Resource)
		c.Resource["service.version"] = c.Version
	}
	client := &http.Client{
		// A redirect would send the headers to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Exporter{config: c, client: client, wake: make(chan struct{}, 1), sending: make(chan struct{}, 1)}
}

// Committed implements port.Observer.
func (e *Exporter) Committed(_ context.Context, r run.Run, events []run.Event) {
	if len(events) == 0 || !e.config.Sampler.Samples(r) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) >= queueLimit {
		e.dropped++
		return
	}
	e.queue = append(e.queue, commit{r, events})
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Dropped implements port.Traces.
func (e *Exporter) Dropped() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.dropped
	e.dropped = 0
	return n
}

// Run exports commits until ctx ends. Commits that arrive during a request are sent together.
func (e *Exporter) Run(ctx context.Context) {
	for {
		e.Flush(ctx)
		if n := e.Dropped(); n > 0 {
			e.config.Log.WarnContext(ctx, "traces were dropped", "commits", n)
		}
		pause, stop := e.pause()
		select {
		case <-ctx.Done():
			stop()
			return
		case <-pause:
		case <-e.wake:
		}
		stop()
	}
}

// pause returns a channel that receives a value when a failed batch may be sent again. It is
// nil for an empty queue.
func (e *Exporter) pause() (<-chan time.Time, func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil, func() {}
	}
	ready, stop := e.config.Clock.NewTimer(e.retryAt.Sub(e.config.Clock.Now()))
	return ready, func() { stop() }
}

// Flush implements port.Traces. It returns when a request fails, and sends nothing in the pause
// after a failed request. A request that ctx cancels does not count as failed.
func (e *Exporter) Flush(ctx context.Context) {
	select {
	case e.sending <- struct{}{}:
		defer func() { <-e.sending }()
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		batch := e.next()
		if len(batch) == 0 {
			return
		}
		var spans []trace.Span
		for _, c := range batch {
			spans = append(spans, trace.OfCommit(c.run, c.events)...)
		}
		err := e.upload(ctx, spans)
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			e.failed(ctx, len(batch), err)
		}
		if err != nil {
			return
		}
		e.sent(len(batch))
	}
}

// next returns the first batch of the queue. It is empty during a pause.
func (e *Exporter) next() []commit {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.config.Clock.Now().Before(e.retryAt) {
		return nil
	}
	return e.queue[:min(len(e.queue), batchLimit)]
}

// sent removes the first commits of the queue.
func (e *Exporter) sent(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(n)
	e.retryAt = time.Time{}
}

// failed records a failed try of a batch. It drops the batch after the last try, or if the
// collector refuses it permanently.
func (e *Exporter) failed(ctx context.Context, n int, cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	again, after := retryable(cause)
	e.retryAt = e.config.Clock.Now().Add(max(after, min(firstPause<<e.failures, lastPause)))
	e.failures++
	if again = again && e.failures < tries; !again {
		e.remove(n)
		e.dropped += n
	}
	e.config.Log.WarnContext(ctx, "traces cannot be exported", "commits", n, "again", again, "error", cut(cause.Error()))
}

func (e *Exporter) remove(n int) {
	e.queue = append([]commit(nil), e.queue[n:]...)
	e.failures = 0
}

// cut shortens a text of the collector for the log.
func cut(text string) string { return limit.Cut(text, limit.Message) }
