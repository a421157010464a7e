package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.CommitOutbox = (*Store)(nil)

// outboxTopic is notified after each commit that may have added a change to the outbox.
const outboxTopic = "outbox"

// encodedChange is the first byte of the record of a change whose events were encoded by the
// commit. The length of the tenant, the tenant, and a block of the events follow. Other records
// are the JSON of a port.Change.
const encodedChange = 1

// EncodeEvents makes each commit of a run encode its events. So the outbox stores them without
// the record of the run. It must be called before the first commit.
func (s *Store) EncodeEvents(encode port.EncodeEvents) { s.encode = encode }

// changeOf returns the outbox record of the change of a commit.
func (s *Store) changeOf(rec record) []byte {
	if s.encode != nil {
		records, err := s.encode(port.Change{Run: *rec.Run, Events: rec.Events})
		if err == nil && len(records) > 0 {
			head := binary.AppendUvarint([]byte{encodedChange}, uint64(len(rec.Run.Tenant)))
			return appendBlock(append(head, rec.Run.Tenant...), records)
		}
	}
	return slices.Concat([]byte(`{"run":`), rec.doc, []byte(`,"events":[`), bytes.Join(rec.events, []byte(",")), []byte("]}"))
}

// ChangeOf decodes the record of a change in the outbox of a Store.
func ChangeOf(record json.RawMessage) (port.Change, error) {
	var c port.Change
	if len(record) > 0 && record[0] == encodedChange {
		size, n := binary.Uvarint(record[1:])
		rest := record[1+max(n, 0):]
		if n <= 0 || size > uint64(len(rest)) {
			return port.Change{}, fmt.Errorf("cannot read a change of the outbox: %w", errShort)
		}
		var err error
		c.Run.Tenant = string(rest[:size])
		if c.Encoded, err = decodeBlock(rest[size:]); err != nil {
			return c, fmt.Errorf("cannot read a change of the outbox: %w", err)
		}
		return c, nil
	}
	if err := json.Unmarshal(record, &c); err != nil {
		return port.Change{}, fmt.Errorf("cannot read a change of the outbox: %w", err)
	}
	fixOptions(&c.Run)
	return c, nil
}

func insertChange(tx *Tx, at time.Time, doc []byte) error {
	_, err := tx.Exec("INSERT INTO outbox (at, doc) VALUES (?, ?)", at.Unix(), doc)
	return err
}

// write is like DB.Write, for a change that may have events or notes. It adds the notes to the
// outbox and notifies outboxTopic.
func (s *Store) write(ctx context.Context, notes []port.Note, do func(*Tx) error) error {
	var doc []byte
	if len(notes) > 0 {
		var err error
		if doc, err = encode(&port.Change{Notes: notes}); err != nil {
			return fmt.Errorf("cannot encode notes: %w", err)
		}
	}
	err := s.db.Write(ctx, func(tx *Tx) error {
		if err := do(tx); err != nil || doc == nil {
			return err
		}
		return insertChange(tx, s.clock.Now(), doc)
	})
	if err == nil {
		s.db.news.notify(outboxTopic)
	}
	return err
}

// AddNotes implements port.Store.
func (s *Store) AddNotes(ctx context.Context, notes ...port.Note) error {
	return wrap(s.write(ctx, notes, func(*Tx) error { return nil }), "store", "notes")
}

// ownID returns the id of the change of a commit, made of its number. A change that was set
// aside with another id has that one.
func ownID(n int64) string { return "#" + strconv.FormatInt(n, 10) }

// ownNumber is the reverse of ownID.
func ownNumber(id string) (n int64, own bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "#"), 10, 64)
	return n, err == nil && ownID(n) == id
}

// SetAside implements port.Outbox.
func (s *Store) SetAside(ctx context.Context, c port.StoredChange) error {
	column, id := "id", any(c.ID)
	if n, own := ownNumber(c.ID); own {
		column, id = "n", n
	}
	return wrap(s.write(ctx, nil, func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO outbox ("+column+`, at, doc) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET at = excluded.at, doc = excluded.doc`, id, c.At.Unix(), c.Record)
		return err
	}), "set aside change", c.ID)
}

// Stored implements port.Outbox. It misses no change.
func (s *Store) Stored(ctx context.Context, after string, limit int) (changes []port.StoredChange, next string, err error) {
	from := int64(0)
	if after != "" {
		if from, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, "", fault.Wrap(err, fault.Internal, "malformed place in the outbox")
		}
	}
	limit, last := max(limit, 1), int64(0)
	err = s.db.Read(ctx, func(tx *Tx) error {
		rows := tx.Query("SELECT n, id, at, doc FROM outbox WHERE n > ? ORDER BY n LIMIT 0 + ?", from, limit+1)
		for rows.Next() {
			var n, at int64
			var id *string
			var c port.StoredChange
			if err := rows.Scan(&n, &id, &at, &c.Record); err != nil {
				return err
			}
			if len(changes) == limit {
				next = strconv.FormatInt(last, 10)
				break
			}
			c.ID, c.At, last = ownID(n), time.Unix(at, 0).UTC(), n
			if id != nil {
				c.ID = *id
			}
			changes = append(changes, c)
		}
		return rows.Err()
	})
	return changes, next, wrap(err, "read", "the outbox")
}

// Published implements port.Outbox.
func (s *Store) Published(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return wrap(s.db.Write(ctx, func(tx *Tx) error {
		_, err := removeChanges(tx, ids)
		return err
	}), "remove changes", strings.Join(ids, " "))
}

// removeChanges removes the stored ones of the changes, and returns their number.
func removeChanges(tx *Tx, ids []string) (removed int64, err error) {
	for i := 0; i < len(ids); i++ {
		query, key := "DELETE FROM outbox WHERE id = ?", []any{ids[i]}
		if first, own := ownNumber(ids[i]); own {
			last := first
			for i+1 < len(ids) && ids[i+1] == ownID(last+1) {
				i, last = i+1, last+1
			}
			query, key = "DELETE FROM outbox WHERE n BETWEEN ? AND ?", []any{first, last}
		}
		n, err := tx.Exec(query, key...)
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

// removal is a Joint that removes changes.
type removal struct {
	ids  []string
	done bool
}

// Join implements port.CommitOutbox. The feed must be in the same DB.
func (s *Store) Join(ctx context.Context, ids ...string) (context.Context, func() bool) {
	r := &removal{ids: ids}
	return Join(ctx, r), func() bool { return r.done }
}

// Begin implements Joint.
func (r *removal) Begin(context.Context) {}

// Write implements Joint.
func (r *removal) Write(tx *Tx) error {
	removed, err := removeChanges(tx, r.ids)
	if err == nil && removed < int64(len(r.ids)) {
		return port.ErrConflict
	}
	return err
}

// End implements Joint.
func (r *removal) End(committed bool) { r.done = committed }

// Wait implements port.CommitOutbox.
func (s *Store) Wait(ctx context.Context, after string) error {
	return wrap(s.db.await(ctx, outboxTopic, func(tx *Tx) (bool, error) {
		from, own := ownNumber(after)
		if !own {
			from = 0
			err := tx.QueryRow("SELECT n FROM outbox WHERE id = ?", after).Scan(&from)
			if err != nil && !errors.Is(err, ErrNoRow) {
				return false, err
			}
		}
		var newest int64
		err := tx.QueryRow("SELECT ifnull(max(n), 0) FROM outbox").Scan(&newest)
		return newest > from, err
	}), "wait for", "a change of the outbox")
}
