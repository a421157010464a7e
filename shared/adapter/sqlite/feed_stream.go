package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// Cursor implements port.Feed.
func (f *Feed) Cursor(ctx context.Context, stream, consumer string) (position int64, err error) {
	err = errors.Join(port.CheckFeedName(stream), port.CheckFeedName(consumer))
	if err == nil {
		err = f.db.Read(ctx, func(tx *Tx) error {
			position, err = cursorOf(tx, stream, consumer)
			return err
		})
	}
	return position, wrap(err, "read a cursor of", stream)
}

func cursorOf(tx *Tx, stream, consumer string) (position int64, err error) {
	err = tx.QueryRow("SELECT position FROM feed_cursors WHERE stream = ? AND consumer = ?", stream, consumer).Scan(&position)
	if errors.Is(err, ErrNoRow) {
		return 0, nil
	}
	return position, err
}

// MoveCursor implements port.Feed.
func (f *Feed) MoveCursor(ctx context.Context, stream, consumer string, from, to int64) error {
	err := errors.Join(port.CheckFeedName(stream), port.CheckFeedName(consumer))
	if err == nil {
		err = f.db.Write(ctx, func(tx *Tx) error {
			position, err := cursorOf(tx, stream, consumer)
			switch {
			case err != nil:
			case position != from:
				err = port.ErrConflict
			case to == 0:
				_, err = tx.Exec("DELETE FROM feed_cursors WHERE stream = ? AND consumer = ?", stream, consumer)
			default:
				_, err = tx.Exec(`INSERT INTO feed_cursors (stream, consumer, position) VALUES (?, ?, ?)
					ON CONFLICT DO UPDATE SET position = excluded.position`, stream, consumer, to)
			}
			return err
		})
	}
	return wrap(err, "move a cursor of", stream)
}

// Streams implements port.Feed. It misses no stream.
func (f *Feed) Streams(ctx context.Context, prefix, after string, limit int) (streams []string, next string, err error) {
	limit = max(limit, 1)
	err = f.db.Read(ctx, func(tx *Tx) error {
		streams = nil
		// No text in UTF-8 has the byte 0xff.
		rows := tx.Query("SELECT stream FROM feed_streams WHERE stream >= ? AND stream < ? AND stream > ? ORDER BY stream LIMIT 0 + ?",
			prefix, prefix+"\xff", after, limit+1)
		for rows.Next() {
			var stream string
			if err := rows.Scan(&stream); err != nil {
				return err
			}
			streams = append(streams, stream)
		}
		return rows.Err()
	})
	if len(streams) > limit {
		streams = streams[:limit]
		next = streams[limit-1]
	}
	return streams, next, wrap(err, "list streams with", prefix)
}

// Trim implements port.Feed.
func (f *Feed) Trim(ctx context.Context, stream string, limit int) (deleted int, err error) {
	if err := port.CheckFeedName(stream); err != nil || limit <= 0 {
		return 0, wrap(err, "trim", stream)
	}
	forgotten := int64(0)
	err = f.db.Write(ctx, func(tx *Tx) error {
		forgotten = 0
		s, err := streamOf(tx, stream)
		if err != nil || s.n == 0 {
			return err
		}
		oldest, err := f.oldest(tx, s)
		if err != nil {
			return err
		}
		records, err := deleteFirst(tx, s, limit, func(position, _ int64) bool { return position < oldest })
		if err != nil {
			return err
		}
		marks, err := tx.Exec(`DELETE FROM feed_marks WHERE stream = 0 + ?1 AND position IN (
			SELECT position FROM feed_marks WHERE stream = 0 + ?1 AND appended_at <= ?2 ORDER BY position LIMIT 0 + ?3)`,
			s.n, f.expired(), int64(limit)-records)
		deleted = int(records + marks)
		if err != nil || f.config.Forget == "" || !strings.HasPrefix(stream, f.config.Forget) {
			return err
		}
		forgotten, err = tx.Exec(`DELETE FROM feed_streams WHERE n = ?1 AND appended_at <= ?2
			AND NOT EXISTS (SELECT 1 FROM feed_records WHERE stream = 0 + ?1) AND NOT EXISTS (SELECT 1 FROM feed_marks WHERE stream = 0 + ?1)`, s.n, f.expired())
		return err
	})
	if err != nil {
		return 0, wrap(err, "trim", stream)
	}
	if forgotten > 0 {
		f.db.tails.forget(stream)
	}
	return deleted, nil
}

// Remove implements port.AnswerFeed. It removes the stream in one transaction.
func (f *Feed) Remove(ctx context.Context, stream string) error {
	err := port.CheckFeedName(stream)
	if err == nil {
		err = f.db.Write(ctx, func(tx *Tx) error {
			s, err := streamOf(tx, stream)
			if err != nil || s.n == 0 {
				return err
			}
			for _, rows := range []string{
				"DELETE FROM feed_records WHERE stream = 0 + ?", "DELETE FROM feed_marks WHERE stream = 0 + ?", "DELETE FROM feed_streams WHERE n = ?",
			} {
				if _, err := tx.Exec(rows, s.n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		f.db.tails.forget(stream)
	}
	return wrap(err, "remove the stream", stream)
}

// deleteFirst deletes at most limit of the first records of a stream, up to the first row that
// is not old, and returns their number. If it deletes part of a row, the last records of the
// row remain.
func deleteFirst(tx *Tx, s feedStream, limit int, old func(position, appendedAt int64) bool) (deleted int64, err error) {
	last, part, some := int64(0), int64(0), int64(0) // delete up to last, and some of the row part
	rows := tx.Query("SELECT position, count, appended_at FROM feed_records WHERE stream = 0 + ? ORDER BY position LIMIT 0 + ?", s.n, max(limit, 0))
	for deleted < int64(limit) && rows.Next() {
		var position, count, at int64
		if err := rows.Scan(&position, &count, &at); err != nil {
			return 0, err
		}
		if !old(position, at) {
			break
		}
		if count > int64(limit)-deleted {
			part, some = position, int64(limit)-deleted
			deleted += some
			break
		}
		last, deleted = position, deleted+count
	}
	rows.Close()
	if err := rows.Err(); err != nil || deleted == 0 {
		return 0, err
	}
	if _, err := tx.Exec("DELETE FROM feed_records WHERE stream = 0 + ? AND position <= ?", s.n, last); err != nil {
		return 0, err
	}
	if some > 0 {
		_, err = tx.Exec("UPDATE feed_records SET count = count - ? WHERE stream = 0 + ? AND position = ?", some, s.n, part)
	}
	return deleted, err
}

// Shed deletes records and marks of a stream that were appended before the time, even if they
// have not expired: the oldest first, at most limit of each. It returns the number of deleted
// records. For readers they have expired.
func (f *Feed) Shed(ctx context.Context, stream string, before time.Time, limit int) (deleted int, err error) {
	err = f.db.Write(ctx, func(tx *Tx) error {
		s, err := streamOf(tx, stream)
		if err != nil || s.n == 0 {
			return err
		}
		// Records are in the order of appended_at, so only the first ones are read.
		records, err := deleteFirst(tx, s, limit, func(_, at int64) bool { return at < nanos(before) })
		if err != nil {
			return err
		}
		deleted = int(records)
		_, err = tx.Exec(`DELETE FROM feed_marks WHERE stream = 0 + ?1 AND position IN (
			SELECT position FROM (SELECT position, appended_at FROM feed_marks WHERE stream = 0 + ?1 ORDER BY position LIMIT 0 + ?3)
			WHERE appended_at < ?2)`, s.n, nanos(before), max(limit, 0))
		return err
	})
	return deleted, wrap(err, "shed records of", stream)
}
