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

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// The row of a run has its first events, without long ones: a row of their own for each would
// be another page of its table and of its index in each commit. The row of the run is written
// anyway, but as a whole, so that it must not grow without a limit.
const (
	historyEvents = 24
	historyBytes  = 1 << 10
)

// inHistory reports whether the row of its run has an event. doc is the encoded event.
func inHistory(e run.Event, doc []byte) bool {
	return e.Seq <= historyEvents && len(doc) <= historyBytes
}

// historyOf is what a write adds to the history: its events with commas between them,
// compressed as events of streams are, and the length before them.
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
	part := deflate(nil, bytes.Join(docs, []byte(",")))
	return append(binary.AppendUvarint(nil, uint64(len(part))), part...)
}

// historyDocs returns the events of a history as JSON arrays, one for each part.
func historyDocs(history []byte) (docs [][]byte, err error) {
	for len(history) > 0 {
		size, n := binary.Uvarint(history)
		if n <= 0 || size > uint64(len(history)-n) { //nolint:gosec // n is at most the length
			return nil, errShort
		}
		end := n + int(size) //nolint:gosec // size is at most the length
		part, err := inflate(bytes.NewReader(history[n:end]), port.MaxFeedData)
		if err != nil {
			return nil, err
		}
		docs, history = append(docs, slices.Concat([]byte("["), part, []byte("]"))), history[end:]
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
		err := tx.QueryRow("SELECT n, history FROM runs WHERE tenant = ? AND id = ? AND "+alive, ref.Tenant, ref.ID, s.now()).Scan(&n, &history)
		if errors.Is(err, ErrNoRow) {
			return nil
		}
		if err != nil {
			return err
		}
		if docs, err = historyDocs(history); err != nil {
			return fault.Wrap(err, fault.Internal, "damaged events")
		}
		rows := tx.Query("SELECT '[' || CAST(doc AS TEXT) || ']' FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT 0 + ?", n, after, limit)
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
	for _, doc := range docs {
		var some []run.Event
		if err := json.Unmarshal(doc, &some); err != nil {
			return nil, fmt.Errorf("cannot decode an event of run %s: %w", ref.ID, err)
		}
		events = append(events, some...)
	}
	slices.SortFunc(events, func(a, b run.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	events = slices.DeleteFunc(events, func(e run.Event) bool { return e.Seq <= after })
	return events[:min(len(events), limit)], nil
}

// addHistory adds the functions joined(a, b) and history_events(history) to a connection: two
// blobs in one, NULL for none, and the events as a JSON array.
func addHistory(conn *sqlite.Conn) error {
	err := conn.CreateFunction("joined", &sqlite.FunctionImpl{
		NArgs: 2, Deterministic: true,
		Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
			if args[1].Type() == sqlite.TypeNull {
				return args[0], nil
			}
			return sqlite.BlobValue(slices.Concat(args[0].Blob(), args[1].Blob())), nil
		},
	})
	if err != nil {
		return err
	}
	return conn.CreateFunction("history_events", &sqlite.FunctionImpl{
		NArgs: 1, Deterministic: true,
		Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
			docs, err := historyDocs(args[0].Blob())
			for i, doc := range docs {
				docs[i] = doc[1 : len(doc)-1]
			}
			return sqlite.TextValue("[" + string(bytes.Join(docs, []byte(","))) + "]"), err
		},
	})
}
