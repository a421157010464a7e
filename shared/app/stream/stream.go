package stream

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// Config configures Streams.
type Config struct {
	// Life is the maximum time that a reader follows a stream. Each stream ends at a random
	// time in the last seventh.
	Life time.Duration
	// Readers is the maximum number of open streams of a tenant in this process.
	Readers int
	// Bytes is the size of events after which a stream ends; 0 means no limit.
	Bytes int64
	// Seats, if not nil, limits the open streams of all processes: Readers for each tenant, and
	// Total for all tenants; 0 means no limit.
	Seats port.Seats
	Total int
	// Keys sign the events that are stored without a signature; nil if all events have one.
	Keys port.EventKeys
	// Record gets the metrics of readers; nil discards them.
	Record series.Recorder
}

// Streams reads the event streams of tenants. It is safe for concurrent use.
type Streams struct {
	feed   port.Feed
	clock  clock.Clock
	log    *slog.Logger
	random func() float64
	config Config
	open   counters

	cache  *cache
	topics *topics
	seats  *seats
}

// New returns Streams that read the feed. random returns a number n with 0 <= n < 1.
func New(feed port.Feed, c clock.Clock, log *slog.Logger, random func() float64, config Config) *Streams {
	if config.Record == nil {
		config.Record = series.Discard
	}
	return &Streams{
		feed: feed, clock: c, log: log, random: random, config: config,
		cache:  newCache(feed, log),
		topics: &topics{feed: feed, clock: c, log: log, open: map[string]*topic{}},
		seats:  newSeats(config.Readers),
	}
}

// Close ends all followed streams and refuses new ones. It returns once the last stream has
// ended, or with the error of ctx.
func (s *Streams) Close(ctx context.Context) error { return s.seats.close(ctx) }

// The limits of a page: the number of positions that it reads, and the size of its events in
// bytes, so that it fits in the response of a Lambda function.
const (
	pagePositions = 10_000
	pageBytes     = 4 << 20
)

// PageQuery selects a page.
type PageQuery struct {
	// After is a cursor, Earliest or Latest.
	After string
	// Limit is the maximum number of events, at least 1.
	Limit  int
	Filter events.Filter
	// Signed requests the signed form. It includes records that are not events, and the
	// checkpoints of the stream if Filter selects all events.
	Signed bool
}

// Page is a part of a stream.
type Page struct {
	Events []*Event
	// Checkpoints are those at the positions of the page and at its start.
	Checkpoints []port.Mark
	// Next is the cursor for the next page. It equals PageQuery.After at the end of the stream.
	Next Cursor
}

// Page returns the events of the caller's tenant after a cursor. If Next has moved, there may
// be further pages, even if this page has fewer events than its limit. Faults: InvalidRequest
// for a malformed cursor, CursorExpired for one that the stream does not have.
func (s *Streams) Page(ctx context.Context, who port.Identity, q PageQuery) (Page, error) {
	from, err := parsePlace(q.After, "after")
	if err != nil {
		return Page{}, err
	}
	name := port.EventStream(who.Tenant)
	head, err := s.feed.Head(ctx, name)
	if err != nil {
		return Page{}, fmt.Errorf("cannot read the end of the stream: %w", err)
	}
	at, ok := from.in(head)
	if !ok {
		return Page{}, expired(head)
	}
	p := Page{Next: at}
	if err := s.fillPage(ctx, &p, q, name, head); err != nil {
		return Page{}, err
	}
	for i, e := range p.Events {
		if !q.Signed {
			break
		}
		if p.Events[i], err = e.signed(ctx, s.config.Keys); err != nil {
			return Page{}, fmt.Errorf("cannot sign an event: %w", err)
		}
	}
	if q.Signed && q.Filter.All() {
		if p.Checkpoints, err = s.marks(ctx, name, at.Position, p.Next.Position); err != nil {
			return Page{}, err
		}
	}
	return p, nil
}

func (s *Streams) fillPage(ctx context.Context, p *Page, q PageQuery, name string, head port.Head) error {
	first, bytes := p.Next.Position, 0
	for p.Next.Position < head.Newest && p.Next.Position-first < pagePositions {
		found, last, err := s.cache.after(ctx, name, p.Next, head.Newest)
		if err != nil {
			return err
		}
		if removed(found, p.Next) {
			if p.Next.Position > first {
				return nil // the next page will be refused
			}
			return expired(head)
		}
		for _, e := range found {
			if len(p.Events) == q.Limit || bytes > pageBytes {
				return nil
			}
			p.Next.Position = e.Position
			if q.Signed && q.Filter.Matches(e.labels) || e.selected(q.Filter) {
				p.Events = append(p.Events, e)
				bytes += e.size()
			}
		}
		p.Next.Position = last
	}
	return nil
}

// marks returns the checkpoints at the positions from and to, and between them.
func (s *Streams) marks(ctx context.Context, name string, from, to int64) (found []port.Mark, err error) {
	const most = 100
	for after := max(from-1, 0); after < to; {
		marks, err := s.feed.Marks(ctx, name, after, most)
		if err != nil {
			return nil, fmt.Errorf("cannot read the checkpoints: %w", err)
		}
		for _, m := range marks {
			if m.Position > to {
				return found, nil
			}
			after, found = m.Position, append(found, m)
		}
		if len(marks) < most {
			return found, nil
		}
	}
	return found, nil
}

// removed reports whether retention has removed the event right after the cursor.
func removed(found []*Event, at Cursor) bool {
	return len(found) == 0 || found[0].Position != at.Position+1
}

// expired returns the fault for a cursor that the stream does not have.
func expired(head port.Head) error {
	return fault.New(fault.CursorExpired, "the stream does not have the events behind the cursor, only those from %s to %s; continue with after=%s",
		oldest(head), Cursor{head.Epoch, head.Newest}, Earliest)
}

// oldest returns the cursor of the oldest event.
func oldest(head port.Head) Cursor { return Cursor{head.Epoch, head.Oldest} }
