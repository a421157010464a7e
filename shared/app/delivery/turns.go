package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Turns serializes the processes that write or read the stream of a tenant, while they contend for
// it. Without contention it makes no call. A stream counts as contended for contendedFor after a
// process has lost a race for it or has waited. It is safe for concurrent use.
//
// Turns only avoid the cost of lost races. Correctness does not depend on them: appends and
// cursors are compare-and-set, and a process that cannot take its turn continues without it.
type Turns struct {
	writers port.Writers
	seats   port.Seats
	clock   clock.Clock
	log     *slog.Logger
	random  func() float64

	mu sync.Mutex
	// races has the time of the last lost race or wait, by the name of the stream or room.
	races map[string]time.Time
}

const (
	// contendedFor is how long turns are taken after a race.
	contendedFor = time.Minute
	// writerTime is the time after which the place of a dead writer expires. A live writer
	// renews its place after half of it.
	writerTime = time.Second
	// writerPatience is the longest time that a writer waits.
	writerPatience = 10 * time.Second
	// firstPause is the polling interval of the first writer in the queue. turnTime is the
	// usual length of a turn.
	firstPause = 4 * time.Millisecond
	turnTime   = 30 * time.Millisecond
	// readerTime is the time after which the place of a dead reader expires.
	readerTime = 10 * time.Second
	// readerPause is how long a reader pauses so that another process can continue.
	readerPause = 50 * time.Millisecond
)

// NewTurns returns Turns. random returns a number, 0 <= n < 1.
func NewTurns(writers port.Writers, seats port.Seats, c clock.Clock, log *slog.Logger, random func() float64) *Turns {
	return &Turns{writers: writers, seats: seats, clock: c, log: log, random: random, races: map[string]time.Time{}}
}

// TurnTaking is Turns, or NoTurns.
type TurnTaking interface {
	// write waits for the turn to write a stream. The caller calls leave after its write.
	write(ctx context.Context, stream string) (leave func())
	// lost records that a race for a stream was lost.
	lost(stream string)
	// read calls the reader of a stream until no record is left. If another process has the
	// turn, read returns at once, and that process reads again after its turn.
	read(ctx context.Context, stream, consumer string, r reader) error
}

// reader handles the records of a stream after a cursor.
type reader struct {
	// some handles some of them, and reports whether there may be more. It returns
	// port.ErrConflict if another process has moved the cursor.
	some func() (more bool, err error)
	// hasMore reports whether there is a record after the cursor.
	hasMore func() (bool, error)
}

// NoTurns is for a process without competing processes.
type NoTurns struct{}

func (NoTurns) write(context.Context, string) func() { return func() {} }

func (NoTurns) lost(string) {}

func (NoTurns) read(_ context.Context, _, _ string, r reader) error {
	for {
		more, err := r.some()
		if errors.Is(err, port.ErrConflict) {
			return nil // another call handles the records
		}
		if !more || err != nil {
			return err
		}
	}
}

func (t *Turns) lost(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	for other, at := range t.races {
		if now.Sub(at) >= contendedFor {
			delete(t.races, other)
		}
	}
	t.races[what] = now
}

// contended reports whether one of the names had a race within contendedFor.
func (t *Turns) contended(what ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	return slices.ContainsFunc(what, func(one string) bool {
		at, known := t.races[one]
		return known && now.Sub(at) < contendedFor
	})
}

// about returns a random duration from half of d to one and a half of it.
func (t *Turns) about(d time.Duration) time.Duration {
	return d/2 + time.Duration(t.random()*float64(d))
}

func (t *Turns) write(ctx context.Context, stream string) (leave func()) {
	if !t.contended(stream) {
		return func() {}
	}
	const bits = 1 << 53
	since := t.clock.Now()
	w := port.Writer{Stream: stream, Since: since, ID: strconv.FormatUint(uint64(t.random()*bits), 36)}
	leave = func() {
		if err := t.writers.Leave(context.WithoutCancel(ctx), w); err != nil {
			t.log.WarnContext(ctx, "cannot leave the queue of a stream; the place ends by itself", "stream", stream, "error", err.Error())
		}
	}
	for renewed := (time.Time{}); ; {
		now := t.clock.Now()
		if now.Sub(renewed) >= writerTime/2 {
			if err := t.writers.Enqueue(ctx, w, now.Add(writerTime)); err != nil {
				t.log.WarnContext(ctx, "cannot join the queue of a stream; it is written without", "stream", stream, "error", err.Error())
				return leave
			}
			renewed = now
		}
		ahead, err := t.writers.Ahead(ctx, w)
		if err != nil {
			t.log.WarnContext(ctx, "cannot read the queue of a stream; it is written without", "stream", stream, "error", err.Error())
		}
		if err != nil || ahead == 0 || now.Sub(since) >= writerPatience {
			return leave
		}
		t.lost(stream)
		pause := min(t.about(firstPause)+time.Duration(ahead-1)*turnTime, writerTime/2)
		if clock.Sleep(ctx, t.clock, pause) != nil {
			return leave
		}
	}
}

func (t *Turns) read(ctx context.Context, stream, consumer string, r reader) error {
	room := stream + " " + consumer
	for ctx.Err() == nil {
		contended := t.contended(room, stream)
		leave, ok := func() {}, true
		if contended {
			leave, ok = t.takeSeat(ctx, room)
		}
		if !ok {
			t.lost(room)
			return nil
		}
		more, err := r.some()
		leave()
		switch {
		case errors.Is(err, port.ErrConflict):
			t.lost(room)
			continue
		case err != nil || !more && !contended:
			return err
		case !more: // processes that came meanwhile have left their records to this one
			more, err = r.hasMore()
		}
		if err != nil || !more {
			return err
		}
		// Another process that comes now continues the work, so that this one can end.
		if err := clock.Sleep(ctx, t.clock, t.about(readerPause)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// takeSeat takes the only seat of a room. ok is false if another process has it. After an error
// the reader continues without a seat.
func (t *Turns) takeSeat(ctx context.Context, room string) (leave func(), ok bool) {
	seat, ok, err := t.seats.TakeSeat(ctx, room, 1, t.clock.Now().Add(readerTime))
	if err != nil {
		t.log.WarnContext(ctx, "cannot take the turn to read a stream; it is read without", "room", room, "error", err.Error())
		return func() {}, true
	}
	return func() {
		if err := t.seats.LeaveSeat(context.WithoutCancel(ctx), seat); err != nil {
			t.log.WarnContext(ctx, "cannot end the turn to read a stream; it ends by itself", "room", room, "error", err.Error())
		}
	}, ok
}

// eachTenant calls do for each tenant, relayTenants at a time, and failed for each error. It
// returns the number of errors.
func eachTenant(tenants []string, do func(tenant string) error, failed func(tenant string, err error)) (failures int) {
	if len(tenants) == 1 {
		if err := do(tenants[0]); err != nil {
			failed(tenants[0], err)
			return 1
		}
		return 0
	}
	var all errgroup.Group
	var number atomic.Int64
	all.SetLimit(relayTenants)
	for _, tenant := range tenants {
		all.Go(func() error {
			if err := do(tenant); err != nil {
				number.Add(1)
				failed(tenant, err)
			}
			return nil
		})
	}
	_ = all.Wait()
	return int(number.Load())
}
