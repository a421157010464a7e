package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// The WebSocket quotas of Amazon API Gateway ("Quotas for configuring and running a WebSocket
// API"). Only SocketRate can be raised.
const (
	// SocketLife is the maximum duration of a connection.
	SocketLife = 2 * time.Hour
	// SocketIdle is the time without a message after which a connection is closed.
	SocketIdle = 10 * time.Minute
	// SocketFrame is the maximum size of a frame. The gateway splits a longer message, and
	// counts each frame, complete or not, as a message. SocketMessage is the maximum size of a
	// message.
	SocketFrame   = 32 << 10
	SocketMessage = 128 << 10
	// SocketRate is the number of new connections per second, for an account and a region.
	SocketRate = 500
)

const (
	// SweepInterval is how often Waker.Sweep is called.
	SweepInterval = time.Minute
	// keepAlive is the time without a message after which a reader gets its cursor. It is short
	// enough that two consecutive sweeps can be late.
	keepAlive = SocketIdle - 2*SweepInterval
	// gatewayLife is the maximum time that a reader follows a stream. It leaves three sweeps to
	// end the stream. Each stream ends at a random time in the last seventh.
	gatewayLife = SocketLife - 3*SweepInterval
	// handshakeTime is how long after Open the gateway may not have the connection yet.
	handshakeTime = 10 * time.Second
)

// Reception stores the connections that a gateway opens. It is safe for concurrent use.
type Reception struct {
	feed        port.Feed
	connections port.Connections
	pushes      port.Pushes
	seats       port.Seats
	readers     int
	record      series.Recorder

	clock  clock.Clock
	random func() float64
}

// NewReception returns a Reception. readers is the maximum number of connections of a tenant.
// record gets the metrics of readers. random returns a number n with 0 <= n < 1.
func NewReception(
	feed port.Feed, connections port.Connections, pushes port.Pushes, seats port.Seats, readers int, record series.Recorder, c clock.Clock, random func() float64,
) *Reception {
	return &Reception{feed, connections, pushes, seats, readers, record, c, random}
}

// Open stores a connection before its handshake is complete. A Pusher then sends the events
// that the query selects. If the tenant has too many connections, the new one ends at once. The
// errors are those of Page.
func (r *Reception) Open(ctx context.Context, who port.Identity, q Query, id string) error {
	from, err := parsePlace(q.After, q.Parameter)
	if err != nil {
		return err
	}
	head, err := r.feed.Head(ctx, port.EventStream(who.Tenant))
	if err != nil {
		return fmt.Errorf("cannot read the end of the stream: %w", err)
	}
	at, ok := from.in(head)
	if !ok && q.FailOnGap {
		return expired(head)
	}
	now := r.clock.Now().UTC()
	const share = 7
	c := port.Connection{
		ID: id, Tenant: who.Tenant, Holder: who.Subject, Filter: q.Filter, Epoch: at.Epoch, Position: at.Position, OpenedAt: now,
		EndsAt: now.Add(gatewayLife - time.Duration(r.random()*float64(gatewayLife)/share)),
	}
	if !ok {
		c.Asked = from.cursor.String()
	}
	seat, seated, err := r.seats.TakeSeat(ctx, "sockets/"+who.Tenant, r.readers, now.Add(SocketLife))
	if err != nil {
		return fmt.Errorf("cannot count the connections: %w", err)
	}
	if c.Seat, c.Refused = seat, !seated; c.Refused {
		r.record(ctx, series.Count(series.ReadersRefused, 1, string(series.WebSocket)))
	}
	if err = r.connections.AddConnection(ctx, c); err == nil {
		err = r.pushes.Push(ctx, who.Tenant, "opened "+id)
	}
	if err != nil {
		// The gateway refuses the connection. Anything that could not be removed expires.
		_ = leave(context.WithoutCancel(ctx), r.connections, r.seats, id, series.EndLost, series.Discard)
		if seated {
			_ = r.seats.LeaveSeat(context.WithoutCancel(ctx), seat)
		}
		return fmt.Errorf("cannot store the connection: %w", err)
	}
	return nil
}

// Leave removes a closed connection. It ignores an unknown one.
func (r *Reception) Leave(ctx context.Context, id string) error {
	return leave(ctx, r.connections, r.seats, id, series.EndGone, r.record)
}

// leave removes a connection and releases its seat.
func leave(
	ctx context.Context, connections port.Connections, seats port.Seats, id string, why series.End, record series.Recorder,
) error {
	was, err := connections.RemoveConnection(ctx, id)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err == nil && !was.Refused {
		record(ctx, series.Count(series.ReadersEnded, 1, string(series.WebSocket), string(why)))
	}
	if err == nil && was.Seat.Room != "" {
		err = seats.LeaveSeat(ctx, was.Seat)
	}
	if err != nil {
		return fmt.Errorf("cannot forget a connection: %w", err)
	}
	return nil
}

// Waker enqueues the tenants with messages for their connections. It is safe for concurrent
// use.
type Waker struct {
	connections port.Connections
	pushes      port.Pushes
	clock       clock.Clock
	log         *slog.Logger
	random      func() float64
}

// NewWaker returns a Waker. random returns a number n with 0 <= n < 1.
func NewWaker(connections port.Connections, pushes port.Pushes, c clock.Clock, log *slog.Logger, random func() float64) *Waker {
	return &Waker{connections, pushes, c, log, random}
}

// DispatchTenants enqueues the tenants that have a connection. The writer of their streams
// calls it after its append. It returns the number of tenants that failed; the sweep enqueues
// these.
func (w *Waker) DispatchTenants(ctx context.Context, tenants []string) (failed int) {
	for _, tenant := range tenants {
		connected, err := w.connections.Connected(ctx, tenant)
		if err == nil && connected {
			err = w.pushes.Push(ctx, tenant, unique(w.clock, w.random))
		}
		if err != nil {
			failed++
			w.log.WarnContext(ctx, "cannot queue the connections of new events; a sweep does", "tenant", tenant, "error", err.Error())
		}
	}
	return failed
}

// Sweep enqueues all tenants that have a connection. It is called once in each SweepInterval,
// and repeats the work of processes that ended early.
func (w *Waker) Sweep(ctx context.Context) error {
	const page = 100
	reason := "sweep " + strconv.FormatInt(w.clock.Now().Unix()/int64(SweepInterval.Seconds()), 10)
	var failed []error
	for after := ""; ; {
		tenants, err := w.connections.ConnectedTenants(ctx, after, page)
		for _, tenant := range tenants {
			failed = append(failed, w.pushes.Push(ctx, tenant, reason))
			after = tenant
		}
		if err != nil || len(tenants) < page {
			if err = errors.Join(append(failed, err)...); err != nil {
				err = fmt.Errorf("cannot queue the connections: %w", err)
			}
			return err
		}
	}
}

// unique returns a reason that no other push has.
func unique(c clock.Clock, random func() float64) string {
	const base, bits = 36, 1 << 53
	return strconv.FormatInt(c.Now().UnixNano(), base) + " " + strconv.FormatUint(uint64(random()*bits), base)
}
