package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/port"
)

// Inspect returns all data that the file stores about a run, by run id or task id: record,
// events, heartbeats and idempotency keys. It contains task tokens. If no run has the id,
// Inspect searches for a job (record, earlier versions, last result), a webhook (record,
// progress, newest deliveries), a stream of events such as events/default (head, cursors,
// newest checkpoints and rows), and an event (its row). Times of streams are nanoseconds since
// 1970. Another process may have the file open. Inspect returns port.ErrNotFound if no tenant
// has such a record.
func Inspect(ctx context.Context, path, id string) (map[string]any, error) {
	var found map[string]any
	err := readFile(ctx, path, func(tx *Tx) (err error) {
		found, err = inspect(tx, id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the record %s: %w", id, err)
	}
	return found, nil
}

// ReadAccount returns an account of a file that another process may have open, or
// port.ErrNotFound.
func ReadAccount(ctx context.Context, path, tenant, scope string) (a budget.Account, err error) {
	err = readFile(ctx, path, func(tx *Tx) error {
		var known bool
		if a, known, err = account(tx, tenant, scope); err == nil && !known {
			return port.ErrNotFound
		}
		return err
	})
	return a, err
}

// readFile reads a file that another process may have open.
func readFile(ctx context.Context, path string, read func(*Tx) error) error {
	conn, err := connect(path, "PRAGMA query_only = ON")
	if err != nil {
		return fmt.Errorf("cannot open the database %s: %w", path, err)
	}
	if err = command(conn, "BEGIN"); err == nil {
		tx := &Tx{conn: conn, ctx: ctx, readOnly: true}
		err = read(tx)
		tx.end()
	}
	return errors.Join(err, conn.Close())
}

func inspect(tx *Tx, id string) (map[string]any, error) {
	history, err := hasColumn(tx, "runs", "history")
	if err != nil {
		return nil, err
	}
	events := "SELECT doc FROM events WHERE run = ?1 ORDER BY seq"
	if history {
		events = `SELECT doc FROM (SELECT CAST(doc AS TEXT) AS doc FROM events WHERE run = ?1
			UNION ALL SELECT e.value FROM runs, json_each(history_events(history)) e WHERE n = ?1) ORDER BY doc ->> 'seq'`
	}
	found, err := inspectBy(tx, id, "SELECT n, doc FROM runs WHERE id = ?1 OR task_id = ?1", map[string]string{
		"events": events,
		"heartbeats": `SELECT json_object('attempt', attempt, 'worker', worker, 'at', at, 'progress', progress, 'message', message,
			'token', token, 'generation', generation, 'cancel', cancel,
			'received', received) FROM beats WHERE run = ?`,
		"idempotencyKeys": "SELECT json_object('tenant', tenant, 'key', key, 'digest', digest) FROM keys WHERE run = ?",
	})
	if !errors.Is(err, port.ErrNotFound) {
		return found, err
	}
	columns := []string{"PACKED", "0", "COUNT", "1"} // in a file of an earlier version
	for pair := range slices.Chunk(columns, 2) {
		name := strings.ToLower(pair[0])
		present, failed := hasColumn(tx, "feed_records", name)
		if failed != nil {
			return nil, failed
		}
		if present {
			pair[1] = "r." + name
		}
	}
	for _, other := range others {
		var present bool // false in a file of an earlier version
		if failed := tx.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = ?", other.table).Scan(&present); failed != nil {
			return nil, failed
		}
		if !present {
			continue
		}
		if found, err = inspectBy(tx, id, other.query, other.beside, columns...); !errors.Is(err, port.ErrNotFound) {
			return found, err
		}
	}
	return nil, port.ErrNotFound
}

// hasColumn reports whether a table has a column, which files of earlier versions lack.
func hasColumn(tx *Tx, table, column string) (has bool, err error) {
	err = tx.QueryRow("SELECT count(*) FROM pragma_table_info(?) WHERE name = ?", table, column).Scan(&has)
	return has, err
}

// others are the records other than runs, in the order of the search. They do not include the
// secrets of webhooks.
var others = []struct {
	table, query string
	beside       map[string]string
}{
	{"jobs", "SELECT n, doc FROM jobs WHERE id = ?", map[string]string{
		"versions":   "SELECT doc FROM job_versions WHERE job = ? ORDER BY version",
		"lastResult": "SELECT doc FROM job_results WHERE job = ?",
	}},
	{"webhooks", "SELECT n, doc FROM webhooks WHERE id = ?", map[string]string{
		"progress":   "SELECT progress FROM webhooks WHERE n = ?",
		"deliveries": "SELECT doc FROM deliveries WHERE webhook = ? ORDER BY position DESC LIMIT 100",
	}},
	{"feed_streams", `SELECT n, json_object('stream', stream, 'epoch', epoch, 'newest', newest, 'appendedAt', appended_at, 'state', CAST(state AS TEXT))
		FROM feed_streams WHERE stream = ?`, map[string]string{
		"checkpoints": `SELECT json_object('position', position, 'appendedAt', appended_at, 'data', CAST(data AS TEXT))
			FROM feed_marks WHERE stream = 0 + ? ORDER BY position DESC LIMIT 100`,
		"cursors": `SELECT json_object('consumer', c.consumer, 'position', c.position)
			FROM feed_cursors c JOIN feed_streams s ON s.stream = c.stream WHERE s.n = ? ORDER BY c.consumer`,
		"newest": `SELECT json_remove(m.value, '$.data')
			FROM (SELECT * FROM feed_records WHERE stream = 0 + ? ORDER BY position DESC LIMIT 100) r, json_each(RECORDS) m
			ORDER BY m.value ->> 'position' DESC LIMIT 100`,
	}},
	{"feed_records", `SELECT r.rowid, json_object('stream', s.stream, 'epoch', s.epoch, 'position', m.value -> 'position', 'id', m.value ->> 'id',
			'at', m.value -> 'at', 'appendedAt', r.appended_at, 'data', m.value ->> 'data')
		FROM feed_streams s JOIN feed_records r ON r.stream = s.n, json_each(RECORDS) m
		WHERE s.stream >= 'events/' AND s.stream < 'events0' AND m.value ->> 'id' = ?`, nil},
}

// recordsOfRow returns the records of a row of feed_records as a JSON array.
const recordsOfRow = "records(PACKED, COUNT, r.position, r.id, r.at, r.data)"

// inspectBy returns the document of the row with the id as "record". It adds the results of the
// queries in beside under their names. These queries get the row's number. replace has words in
// the queries and their replacements.
func inspectBy(tx *Tx, id, query string, beside map[string]string, replace ...string) (map[string]any, error) {
	recordsOf := strings.NewReplacer(replace...).Replace(recordsOfRow)
	replaced := strings.NewReplacer("RECORDS", recordsOf)
	var n int64
	var doc json.RawMessage
	err := tx.QueryRow(replaced.Replace(query), id).Scan(&n, &doc)
	if errors.Is(err, ErrNoRow) {
		return nil, port.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	found := map[string]any{"record": doc}
	for name, query := range beside {
		list := []json.RawMessage{}
		rows := tx.Query(replaced.Replace(query), n)
		for rows.Next() {
			var doc json.RawMessage
			if err := rows.Scan(&doc); err != nil {
				return nil, err
			}
			list = append(list, doc)
		}
		if rows.Err() != nil {
			return nil, rows.Err()
		}
		if len(list) > 0 {
			found[name] = list
		}
	}
	return found, nil
}
