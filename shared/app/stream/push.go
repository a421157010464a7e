package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// The limits of a push.
const (
	// pushEvents is the maximum number of events for a reader in one round. The readers of a
	// tenant get their events in turns, and a process that ends repeats at most this number.
	pushEvents = 50
	// pushWorkers is the number of readers that are served at the same time.
	pushWorkers = 32
	// pushTime is the time after which the remaining work is left to another push. sendTime is
	// the time limit of a message; a slower reader gets it in a later push.
	pushTime = 5 * time.Second
	sendTime = 5 * time.Second
	// handshakePause is the pause before the next try to send to a new connection.
	handshakePause = 100 * time.Millisecond
	// pushFailures is the number of consecutive failed messages after which a reader is
	// disconnected.
	pushFailures = 3
)

// Render returns the messages of a batch: one for each event, then the others.
type Render func(Batch) ([][]byte, error)

// Pusher sends the events of streams to the connections that a gateway keeps open, each from
// its own cursor. It is safe for concurrent use.
//
// A cursor is stored by compare-and-set after the messages up to it were sent. So delivery is
// at least once: a message is repeated only if a process ends, or cannot reach the store,
// between the two. Readers recognize a repeated message by its cursor.
type Pusher struct {
	PusherConfig

	cache *cache
}

// PusherConfig configures a Pusher. All fields are required. Random returns a number n with 0
// <= n < 1. Holds reports whether the holder of a connection still has a token for the events
// of its tenant.
type PusherConfig struct {
	Holds       func(ctx context.Context, tenant, holder string) (bool, error)
	Feed        port.Feed
	Connections port.Connections
	Sockets     port.Sockets
	Pushes      port.Pushes
	Seats       port.Seats
	Render      Render
	Record      series.Recorder
	Clock       clock.Clock
	Log         *slog.Logger
	Random      func() float64
}

// NewPusher returns a Pusher.
func NewPusher(c PusherConfig) *Pusher { return &Pusher{c, newCache(c.Feed, c.Log)} }

// Push sends the connections of a tenant their next messages, and ends those whose time has
// passed. After some seconds it enqueues the rest. After an error, the push must be repeated.
func (p *Pusher) Push(ctx context.Context, tenant string) error {
	r := pushRun{Pusher: p, tenant: tenant, failed: map[string]bool{}}
	for until := p.Clock.Now().Add(pushTime); ; {
		next, err := r.round(ctx)
		switch {
		case err != nil:
			return err
		case next == served:
			return nil
		case !p.Clock.Now().Before(until):
			return p.Pushes.Push(ctx, tenant, unique(p.Clock, p.Random))
		case next == absent:
			if err := clock.Sleep(ctx, p.Clock, handshakePause); err != nil {
				return err
			}
		}
	}
}

// pushRun is one call of Push.
type pushRun struct {
	*Pusher

	tenant string

	mu sync.Mutex
	// failed are the connections that are left to a later push.
	failed map[string]bool
}

// fail leaves a connection to a later push.
func (p *pushRun) fail(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[id] = true
}

// state is the state in which a round leaves a connection, in the order of urgency.
type state int

const (
	served state = iota
	absent       // the gateway does not have the connection yet
	behind       // there are further events
)

// round sends at most pushEvents events to each connection of the tenant.
func (p *pushRun) round(ctx context.Context) (next state, err error) {
	const page = 100
	head, err := p.Feed.Head(ctx, port.EventStream(p.tenant))
	if err != nil {
		return served, fmt.Errorf("cannot read the end of the stream: %w", err)
	}
	for after := ""; ; {
		found, err := p.Connections.LoadConnections(ctx, p.tenant, after, page)
		if err != nil {
			return served, fmt.Errorf("cannot read the connections: %w", err)
		}
		full, last := len(found) == page, ""
		if full {
			last = found[page-1].ID
		}
		of, err := p.all(ctx, found, head)
		if err != nil {
			return served, err
		}
		next = max(next, of)
		if !full {
			return next, nil
		}
		after = last
	}
}

// all serves connections in parallel.
func (p *pushRun) all(ctx context.Context, found []port.Connection, head port.Head) (next state, err error) {
	found = slices.DeleteFunc(found, func(c port.Connection) bool { return p.failed[c.ID] })
	var each sync.WaitGroup
	var mu sync.Mutex
	turns := make(chan struct{}, pushWorkers)
	for _, c := range found {
		turns <- struct{}{}
		each.Go(func() {
			defer func() { <-turns }()
			of, failed := p.serve(ctx, c, head)
			mu.Lock()
			defer mu.Unlock()
			next, err = max(next, of), errors.Join(err, failed)
		})
	}
	each.Wait()
	return next, err
}

// serve sends one connection its next messages.
func (p *pushRun) serve(ctx context.Context, c port.Connection, head port.Head) (state, error) {
	if p.revoked(ctx, c) {
		return served, p.end(ctx, c, series.EndRevoked)
	}
	b, more, err := p.batch(ctx, &c, head)
	if err != nil {
		return served, err
	}
	var messages [][]byte
	if idle := p.Clock.Now().Sub(c.SentAt); len(b.Events) > 0 || b.End || !c.Greeted || idle >= keepAlive {
		if messages, err = p.Render(b); err != nil {
			return served, err
		}
	}
	sent, failed := p.send(ctx, c.ID, messages)
	if sent > 0 {
		c.Failures = 0
		p.Record(ctx, series.Count(series.EventsSent, min(sent, len(b.Events)), string(series.WebSocket)))
	}
	switch {
	case errors.Is(failed, port.ErrGone) && !c.Greeted && p.Clock.Now().Before(c.OpenedAt.Add(handshakeTime)):
		return absent, nil
	case errors.Is(failed, port.ErrGone):
		return served, p.end(ctx, c, series.EndGone)
	case b.End && failed == nil && p.Clock.Now().Before(c.EndsAt):
		return served, p.end(ctx, c, series.EndLost)
	case b.End && failed == nil:
		return served, p.end(ctx, c, series.EndLifetime)
	case failed != nil:
		c.Failures++
		p.Log.WarnContext(ctx, "cannot send to a connection", "tenant", c.Tenant, "connection", c.ID, "failures", c.Failures, "error", failed.Error())
		if c.Failures >= pushFailures {
			return served, p.end(ctx, c, series.EndSlow)
		}
		more = false
		p.fail(c.ID)
	}
	at := b.Cursor.Position
	if failed != nil {
		at = c.Position
		if n := min(sent, len(b.Events)); n > 0 {
			at = b.Events[n-1].Position
		}
	}
	if sent == 0 && failed == nil && at-c.Position < chunkLength {
		return served, nil // reading the events again is cheaper than storing the cursor
	}
	c.Epoch, c.Position, c.Greeted = b.Cursor.Epoch, at, c.Greeted || failed == nil
	if sent > 0 {
		c.SentAt = p.Clock.Now().UTC()
	}
	if err := p.Connections.SaveConnection(ctx, c); errors.Is(err, port.ErrConflict) {
		return served, nil // the reader has left, or another push serves it
	} else if err != nil {
		return served, fmt.Errorf("cannot store the cursor of a connection: %w", err)
	}
	if more {
		return behind, nil
	}
	return served, nil
}

// revoked reports whether the token of a connection's holder is known to be invalid.
func (p *Pusher) revoked(ctx context.Context, c port.Connection) bool {
	if c.Holder == "" {
		return false
	}
	ok, err := p.Holds(ctx, c.Tenant, c.Holder)
	if err != nil {
		p.Log.WarnContext(ctx, "cannot check the token of a connection", "tenant", c.Tenant, "connection", c.ID, "error", err.Error())
	}
	return err == nil && !ok
}

// batch returns the next batch of a connection. more reports that further events follow it.
func (p *Pusher) batch(ctx context.Context, c *port.Connection, head port.Head) (b Batch, more bool, err error) {
	if c.Epoch == "" { // the stream was empty
		c.Epoch = head.Epoch
	}
	b.Cursor = Cursor{c.Epoch, c.Position}
	if c.Refused {
		b.Retry, b.End = RefusedRetry, true
		return b, false, nil
	}
	now := p.Clock.Now()
	if !c.Greeted {
		b.Retry = randomRetry(p.Random)
		if asked, ok := ParseCursor(c.Asked); ok {
			b.Gap = &Gap{asked, oldest(head), Cursor{head.Epoch, head.Newest}}
		}
		return b, c.Position < head.Newest, nil
	}
	if c.Epoch != head.Epoch || !now.Before(c.EndsAt) {
		b.Retry, b.End = randomRetry(p.Random), true
		return b, false, nil
	}
	for b.Cursor.Position < head.Newest && len(b.Events) == 0 {
		found, last, err := p.cache.after(ctx, port.EventStream(c.Tenant), b.Cursor, head.Newest)
		if err != nil {
			return b, false, err
		}
		if removed(found, b.Cursor) { // the reader reconnects and gets a gap
			return Batch{Cursor: b.Cursor, Retry: randomRetry(p.Random), End: true}, false, nil
		}
		b.Cursor.Position = last
		for _, e := range found {
			if e.selected(c.Filter) {
				b.Events = append(b.Events, e)
			}
		}
	}
	more = b.Cursor.Position < head.Newest
	if n := min(len(b.Events), pushEvents); n > 0 {
		more = more || n < len(b.Events)
		// The cursor is that of the last event, so it needs no message of its own.
		b.Events, b.Cursor.Position = b.Events[:n], b.Events[n-1].Position
	}
	return b, more, nil
}

// send sends messages until one fails, and returns the number of sent messages.
func (p *Pusher) send(ctx context.Context, id string, messages [][]byte) (sent int, err error) {
	for _, m := range messages {
		limited, cancel := context.WithTimeout(ctx, sendTime)
		err := p.Sockets.Send(limited, id, m)
		cancel()
		if err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}

// end disconnects a connection and removes it.
func (p *Pusher) end(ctx context.Context, c port.Connection, why series.End) error {
	if err := p.Sockets.Disconnect(ctx, c.ID); err != nil {
		return fmt.Errorf("cannot close a connection: %w", err)
	}
	return leave(ctx, p.Connections, p.Seats, c.ID, why, p.Record)
}
