package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Feed implements port.Feed in a DB. A write that failed with a StoreFull or Unavailable
// fault was not applied. Wait returns after the commit of an append.
type Feed struct {
	db     *DB
	config FeedConfig
}

// FeedConfig configures a Feed.
type FeedConfig struct {
	// Clock is the clock by which records expire.
	Clock clock.Clock
	// Retention is how long records and marks are kept.
	Retention time.Duration
	// Forget is the prefix of the streams that Trim deletes entirely when all their records and
	// marks have expired. Their positions start again. With "" Trim deletes no stream.
	Forget string
	// Random returns 64 random bits, of which epochs are made; nil means the host's
	// generator.
	Random func() uint64
}

var _ port.Feed = (*Feed)(nil)

// NewFeed creates or migrates the feed's tables in db. It returns ErrNewer if a newer
// version wrote them. The caller closes db.
func NewFeed(ctx context.Context, db *DB, c FeedConfig) (*Feed, error) {
	if c.Retention <= 0 {
		return nil, fmt.Errorf("retention of the feed: %v is out of range, want a positive duration", c.Retention)
	}
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	if err := db.Migrate(ctx, "feed", feedSteps); err != nil {
		return nil, err
	}
	return &Feed{db, c}, nil
}

// feedStream is the row of a stream.
type feedStream struct {
	n, newest, appendedAt int64
	epoch                 string
	state                 []byte
}

// streamOf returns the row of a stream, or the zero value for an empty stream.
func streamOf(tx *Tx, stream string) (s feedStream, err error) {
	err = tx.QueryRow("SELECT n, epoch, newest, appended_at, state FROM feed_streams WHERE stream = ?", stream).
		Scan(&s.n, &s.epoch, &s.newest, &s.appendedAt, &s.state)
	if errors.Is(err, ErrNoRow) {
		return feedStream{}, nil
	}
	return s, err
}

// expired returns the append time up to which records have expired, in Unix nanoseconds.
func (f *Feed) expired() int64 { return nanos(f.config.Clock.Now().Add(-f.config.Retention)) }

// oldest returns the first position that has not expired, or newest+1 if all have. For a stream
// that never had a record that is 1.
func (f *Feed) oldest(tx *Tx, s feedStream) (int64, error) {
	first, expired := s.newest+1, f.expired()
	err := tx.QueryRow("SELECT position - count + 1 FROM feed_records WHERE stream = 0 + ? ORDER BY position LIMIT 1", s.n).Scan(&first)
	if err != nil && !errors.Is(err, ErrNoRow) {
		return 0, err
	}
	err = nil
	// The first record is expired only until Trim deletes it.
	expiredAt := func(position int64) bool {
		var at int64
		if err == nil {
			err = tx.QueryRow("SELECT appended_at FROM feed_records WHERE stream = 0 + ? AND position >= 0 + ? ORDER BY position LIMIT 1", s.n, position).Scan(&at)
		}
		return at <= expired
	}
	if first > s.newest || !expiredAt(first) {
		return first, err
	}
	after := sort.Search(int(s.newest-first), func(i int) bool { return !expiredAt(first + 1 + int64(i)) })
	return first + 1 + int64(after), err
}

func (f *Feed) head(tx *Tx, s feedStream) (port.Head, error) {
	h := port.Head{Epoch: s.epoch, Newest: s.newest, State: s.state}
	if s.newest == 0 {
		return h, nil
	}
	var err error
	h.Oldest, err = f.oldest(tx, s)
	return h, err
}

// read calls do with the row of a stream in a read transaction. It does not call do for an
// empty stream.
func (f *Feed) read(ctx context.Context, doing, stream string, do func(*Tx, feedStream) error) error {
	err := port.CheckFeedName(stream)
	if err == nil {
		err = f.db.Read(ctx, func(tx *Tx) error {
			s, err := streamOf(tx, stream)
			if err != nil || s.n == 0 {
				return err
			}
			return do(tx, s)
		})
	}
	return wrap(err, doing, stream)
}

// Head implements port.Feed.
func (f *Feed) Head(ctx context.Context, stream string) (h port.Head, err error) {
	err = f.read(ctx, "read the head of", stream, func(tx *Tx, s feedStream) error {
		h, err = f.head(tx, s)
		return err
	})
	return h, err
}

// Append implements port.Feed. Concurrent appends share a commit.
func (f *Feed) Append(ctx context.Context, stream string, b port.Batch) (h port.Head, err error) {
	if err := errors.Join(port.CheckFeedName(stream), b.Check()); err != nil {
		return port.Head{}, wrap(err, "append to", stream)
	}
	epoch := strconv.FormatUint(f.config.Random(), 36)
	appendedAt := int64(0)
	rows := rowsOf(b)
	write := f.db.Write
	if b.Relaxed {
		write = f.db.WriteRelaxed
	}
	err = write(ctx, func(tx *Tx) error {
		s, err := streamOf(tx, stream)
		if err == nil && s.newest != b.After {
			err = &port.FeedConflict{Newest: s.newest}
		}
		if err != nil {
			return err
		}
		s.appendedAt = max(s.appendedAt, nanos(f.config.Clock.Now()))
		appendedAt = s.appendedAt
		s.newest += int64(len(b.Records))
		s.state = b.State
		if err := tx.QueryRow(`INSERT INTO feed_streams (stream, epoch, newest, appended_at, state, due_at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET newest = excluded.newest, appended_at = excluded.appended_at, state = excluded.state,
			due_at = iif(due_at > 0, due_at, excluded.due_at)
			RETURNING n, epoch`, stream, epoch, s.newest, s.appendedAt, blob(b.State), dueNanos(b.DueAt)).Scan(&s.n, &s.epoch); err != nil {
			return err
		}
		for _, r := range rows {
			if _, err := tx.Exec("INSERT INTO feed_records (stream, position, appended_at, at, id, packed, count, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
				s.n, r.position, s.appendedAt, r.at, r.id, r.form, r.count, r.data); err != nil {
				return err
			}
		}
		if b.Mark != nil {
			if _, err := tx.Exec("INSERT OR REPLACE INTO feed_marks (stream, position, appended_at, data) VALUES (?, ?, ?, ?)",
				s.n, s.newest, s.appendedAt, blob(b.Mark)); err != nil {
				return err
			}
		}
		h, err = f.head(tx, s)
		return err
	})
	if err != nil {
		return port.Head{}, wrap(err, "append to", stream)
	}
	f.db.tails.appended(stream, b, appendedAt)
	return h, nil
}

// blob returns b, or an empty slice for nil, because the column is NOT NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Marks implements port.Feed.
func (f *Feed) Marks(ctx context.Context, stream string, after int64, limit int) (marks []port.Mark, err error) {
	err = f.read(ctx, "read the marks of", stream, func(tx *Tx, s feedStream) error {
		rows := tx.Query(`SELECT position, data FROM feed_marks WHERE stream = 0 + ? AND position > ? AND appended_at > ?
			ORDER BY position LIMIT 0 + ?`, s.n, after, f.expired(), max(limit, 0))
		for rows.Next() {
			var m port.Mark
			if err := rows.Scan(&m.Position, &m.Data); err != nil {
				return err
			}
			marks = append(marks, m)
		}
		return rows.Err()
	})
	return marks, err
}
