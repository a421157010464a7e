package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// The row of a run has its first events, except long ones. A separate row for each event would
// change another page of its table and of its index in each commit. The row of the run is
// written anyway, but as a whole, so its size is limited.
const (
	historyEvents = 24
	historyBytes  = 1 << 10
)

// inHistory reports whether the row of its run stores an event. doc is the encoded event.
func inHistory(e run.Event, doc []byte) bool {
	return e.Seq <= historyEvents && len(doc) <= historyBytes
}

// historyOf returns the part that a write adds to the history: its events with commas between
// them, not packed. It returns nil without an event.
func historyOf(rec record) []byte {
	var docs [][]byte
	for i, e := range rec.Events {
		if inHistory(e, rec.events[i]) {
			docs = append(docs, rec.events[i])
		}
	}
	if docs == nil {
		return nil
	}
	part := bytes.Join(docs, []byte(","))
	return append(binary.AppendUvarint([]byte{unpackedPart}, uint64(len(part))), part...)
}

// A packed part of a history is its length, and its events compressed like those of streams.
// Another part is unpackedPart, its length, and its events. The parts are packed together when
// the run has ended, and when they have filled a page. Until then the row is written with each
// event, and compression costs more than it saves.
const (
	unpackedPart = 0 // no packed part has this length
	unpackedMost = 4 << 10
)

// joinHistory appends a part of historyOf to a history. It packs the result if the run has
// ended, or if it is longer than unpackedMost.
func joinHistory(history, part []byte, ended bool) ([]byte, error) {
	history = slices.Concat(history, part)
	if !ended && len(history) <= unpackedMost {
		return history, nil
	}
	docs, err := historyDocs(history)
	if err != nil {
		return nil, err
	}
	packed := deflate(nil, bytes.Join(docs, []byte(",")))
	return append(binary.AppendUvarint(nil, uint64(len(packed))), packed...), nil
}

// historyDocs returns the events of a history with commas between them, one text for each part.
func historyDocs(history []byte) (docs [][]byte, err error) {
	for len(history) > 0 {
		packed := history[0] != unpackedPart
		if !packed {
			history = history[1:]
		}
		size, n := binary.Uvarint(history)
		if n <= 0 || size == 0 || size > uint64(len(history)-n) { //nolint:gosec // n is at most the length
			return nil, errShort
		}
		end := n + int(size) //nolint:gosec // size is at most the length
		part := history[n:end]
		if packed {
			if part, err = inflate(bytes.NewReader(part), port.MaxFeedData); err != nil {
				return nil, err
			}
		}
		docs, history = append(docs, part), history[end:]
	}
	return docs, nil
}

// Events implements port.Store. A run that is not found has no events.
func (s *Store) Events(ctx context.Context, ref run.Ref, after, limit int) (events []run.Event, err error) {
	limit = max(limit, 0)
	var docs [][]byte
	err = s.db.Read(ctx, func(tx *Tx) error {
		var n int64
		var history []byte
		err := tx.QueryRow("SELECT n, history FROM runs WHERE tenant = ? AND id = ? AND "+notExpiredSQL, ref.Tenant, ref.ID, s.now()).Scan(&n, &history)
		if errors.Is(err, ErrNoRow) {
			return nil
		}
		if err != nil {
			return err
		}
		if docs, err = historyDocs(history); err != nil {
			return fault.Wrap(err, fault.Internal, "damaged events")
		}
		rows := tx.Query("SELECT doc FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT 0 + ?", n, after, limit)
		for rows.Next() {
			var doc []byte
			if err := rows.Scan(&doc); err != nil {
				return err
			}
			docs = append(docs, doc)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, wrap(err, "read the events of run", ref.ID)
	}
	if err := json.Unmarshal(arrayOf(docs), &events); err != nil {
		return nil, fmt.Errorf("cannot decode the events of run %s: %w", ref.ID, err)
	}
	slices.SortFunc(events, func(a, b run.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	events = slices.DeleteFunc(events, func(e run.Event) bool { return e.Seq <= after })
	return events[:min(len(events), limit)], nil
}

// arrayOf returns the JSON array of documents.
func arrayOf(docs [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(docs, []byte(",")), []byte("]"))
}

// addHistory adds SQL functions to a connection. joined(history, part, ended) calls
// joinHistory, where NULL is an empty history or part. history_events(history) returns the
// events as a JSON array.
func addHistory(conn *sqlite.Conn) error {
	err := conn.CreateFunction("joined", &sqlite.FunctionImpl{
		NArgs: 3, Deterministic: true,
		Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
			if args[1].Type() == sqlite.TypeNull {
				return args[0], nil
			}
			history, err := joinHistory(args[0].Blob(), args[1].Blob(), args[2].Int64() != 0)
			return sqlite.BlobValue(history), err
		},
	})
	if err != nil {
		return err
	}
	return conn.CreateFunction("history_events", &sqlite.FunctionImpl{
		NArgs: 1, Deterministic: true,
		Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
			docs, err := historyDocs(args[0].Blob())
			return sqlite.TextValue(string(arrayOf(docs))), err
		},
	})
}
