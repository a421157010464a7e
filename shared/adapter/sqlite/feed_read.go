package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// columnsOfRow are the columns that scanRow reads.
const columnsOfRow = "position, count, id, at, packed, data"

func scanRow(rows *Rows) (r feedRow, err error) {
	err = rows.Scan(&r.position, &r.count, &r.id, &r.at, &r.form, &r.data)
	return r, err
}

// Read implements port.Feed.
func (f *Feed) Read(ctx context.Context, stream string, after int64, limit int) (records []port.FeedRecord, err error) {
	if limit <= 0 {
		return nil, wrap(port.CheckFeedName(stream), "read", stream)
	}
	if records, ok := f.db.tails.read(stream, after, f.expired(), limit); ok {
		return records, ctx.Err()
	}
	err = f.read(ctx, "read", stream, func(tx *Tx, s feedStream) error {
		oldest, err := f.oldest(tx, s)
		if err != nil {
			return err
		}
		size, first := 0, max(after+1, oldest)
		rows := tx.Query("SELECT "+columnsOfRow+" FROM feed_records WHERE stream = 0 + ? AND position >= ? ORDER BY position LIMIT 0 + ?", s.n, first, limit)
		defer rows.Close()
		for rows.Next() {
			found, err := recordsOf(rows)
			if err != nil {
				return err
			}
			for _, r := range found {
				if r.Position < first {
					continue
				}
				if size += len(r.Data); len(records) == limit || len(records) > 0 && size > port.MaxFeedPage {
					return nil
				}
				records = append(records, r)
			}
		}
		return rows.Err()
	})
	return records, err
}

// recordsOf returns the records of the current row.
func recordsOf(rows *Rows) ([]port.FeedRecord, error) {
	row, err := scanRow(rows)
	if err != nil {
		return nil, err
	}
	records, err := row.records()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "unreadable record of a stream")
	}
	return records, nil
}

// earlier is how long before its time a record may have been appended, because the clocks of
// writers differ.
const earlier = time.Minute

// Positions implements port.Feed.
func (f *Feed) Positions(ctx context.Context, stream string, records []port.FeedRecord) (map[string]int64, error) {
	found := map[string]int64{}
	err := f.read(ctx, "read positions of", stream, func(tx *Tx, s feedStream) error {
		expired := f.expired() // a record that expired may have been appended again
		since, rest := int64(0), map[string]bool{}
		for _, r := range records {
			var position int64
			err := tx.QueryRow("SELECT position FROM feed_records WHERE stream = 0 + ? AND id = ? AND packed < 3 AND appended_at > ?", s.n, r.ID, expired).Scan(&position)
			if err == nil {
				found[r.ID] = position
				continue
			}
			if !errors.Is(err, ErrNoRow) {
				return err
			}
			if at := nanos(r.At.Add(-earlier)); len(rest) == 0 || at < since {
				since = at
			}
			rest[r.ID] = true
		}
		return inBlocks(tx, s, max(since, expired), rest, found)
	})
	return found, err
}

// inBlocks searches for ids in the blocks that were appended after a time, newest first. It
// moves the ids that it finds to found.
func inBlocks(tx *Tx, s feedStream, after int64, ids map[string]bool, found map[string]int64) error {
	if len(ids) == 0 {
		return nil
	}
	rows := tx.Query("SELECT "+columnsOfRow+", appended_at FROM feed_records WHERE stream = 0 + ? ORDER BY position DESC", s.n)
	defer rows.Close()
	for len(ids) > 0 && rows.Next() {
		var row feedRow
		var appendedAt int64
		if err := rows.Scan(&row.position, &row.count, &row.id, &row.at, &row.form, &row.data, &appendedAt); err != nil {
			return err
		}
		if appendedAt <= after {
			break
		}
		if !isBlock(row.form) {
			continue
		}
		records, err := row.records()
		if err != nil {
			return fault.Wrap(err, fault.Internal, "unreadable record of a stream")
		}
		for _, r := range records {
			if ids[r.ID] {
				found[r.ID] = r.Position
				delete(ids, r.ID)
			}
		}
	}
	return rows.Err()
}
