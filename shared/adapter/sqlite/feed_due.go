package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// dueNanos returns the column of a time at which a stream is due, 0 for the zero time.
func dueNanos(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return max(nanos(at), 1)
}

// Due implements port.Feed. It misses no stream.
func (f *Feed) Due(ctx context.Context, group string, now time.Time, after string, limit int) (streams []string, next string, err error) {
	if err := port.CheckFeedGroup(group); err != nil {
		return nil, "", err
	}
	limit = max(limit, 1)
	var behind struct {
		at     int64
		stream string
	}
	if after != "" {
		at, stream, _ := strings.Cut(after, " ")
		if _, err := fmt.Sscan(at, &behind.at); err != nil {
			return nil, "", fault.Wrap(err, fault.Internal, "malformed place among the due streams")
		}
		behind.stream = stream
	}
	var ats []int64
	err = f.db.Read(ctx, func(tx *Tx) error {
		streams, ats = nil, nil
		rows := tx.Query(`SELECT due_at, stream FROM feed_streams WHERE due_at > 0 AND due_at <= ?1 AND (due_at, stream) > (?2, ?3)
			AND stream >= ?4 AND stream < ?5 ORDER BY due_at, stream LIMIT 0 + ?6`,
			dueNanos(now), behind.at, behind.stream, group, group+"\xff", limit+1) // no text in UTF-8 has the byte 0xff
		for rows.Next() {
			var at int64
			var stream string
			if err := rows.Scan(&at, &stream); err != nil {
				return err
			}
			streams, ats = append(streams, stream), append(ats, at)
		}
		return rows.Err()
	})
	if len(streams) > limit {
		streams = streams[:limit]
		next = fmt.Sprint(ats[limit-1], " ", streams[limit-1])
	}
	return streams, next, wrap(err, "read the due streams of", group)
}

// SetDue implements port.Feed.
func (f *Feed) SetDue(ctx context.Context, stream string, at time.Time) error {
	err := port.CheckFeedName(stream)
	if err == nil {
		err = f.db.Write(ctx, func(tx *Tx) error {
			_, err := tx.Exec("UPDATE feed_streams SET due_at = ? WHERE stream = ?", dueNanos(at), stream)
			return err
		})
	}
	return wrap(err, "set the time of", stream)
}

// Settle implements port.Feed.
func (f *Feed) Settle(ctx context.Context, stream string, newest int64) error {
	err := port.CheckFeedName(stream)
	if err == nil {
		err = f.db.Write(ctx, func(tx *Tx) error {
			s, err := streamOf(tx, stream)
			if err == nil && s.newest != newest {
				return port.ErrConflict
			}
			if err == nil {
				_, err = tx.Exec("UPDATE feed_streams SET due_at = 0 WHERE stream = ?", stream)
			}
			return err
		})
	}
	if errors.Is(err, port.ErrConflict) {
		return port.ErrConflict
	}
	return wrap(err, "settle", stream)
}
