package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/port"
)

// Inspect returns what the file stores about a run, found by its id or its
// task id: record, events, heartbeats and idempotency keys. It contains task
// tokens. An id of no run is that of a job: record, earlier versions and last result.
// Another process may have the file open. port.ErrNotFound if no tenant has such a run
// or job.
func Inspect(ctx context.Context, path, id string) (map[string]any, error) {
	conn, err := connect(path, "PRAGMA query_only = ON")
	if err != nil {
		return nil, fmt.Errorf("cannot open the database %s: %w", path, err)
	}
	var found map[string]any
	err = command(conn, "BEGIN")
	if err == nil {
		tx := &Tx{conn: conn, ctx: ctx, readOnly: true}
		found, err = inspect(tx, id)
		tx.end()
	}
	if err := errors.Join(err, conn.Close()); err != nil {
		return nil, fmt.Errorf("cannot read run or job %s: %w", id, err)
	}
	return found, nil
}

func inspect(tx *Tx, id string) (map[string]any, error) {
	found, err := inspectBy(tx, id, "SELECT n, doc FROM runs WHERE id = ?1 OR task_id = ?1", map[string]string{
		"events": "SELECT doc FROM events WHERE run = ? ORDER BY seq",
		"heartbeats": `SELECT json_object('attempt', attempt, 'worker', worker, 'at', at, 'progress', progress, 'message', message,
			'token', token, 'generation', generation, 'cancel', cancel,
			'received', received) FROM beats WHERE run = ?`,
		"idempotencyKeys": "SELECT json_object('tenant', tenant, 'key', key, 'digest', digest) FROM keys WHERE run = ?",
	})
	if !errors.Is(err, port.ErrNotFound) {
		return found, err
	}
	var jobs bool // false in a file of an earlier version
	if failed := tx.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'jobs'").Scan(&jobs); failed != nil || !jobs {
		return nil, errors.Join(failed, err)
	}
	return inspectBy(tx, id, "SELECT n, doc FROM jobs WHERE id = ?", map[string]string{
		"versions":   "SELECT doc FROM job_versions WHERE job = ? ORDER BY version",
		"lastResult": "SELECT doc FROM job_results WHERE job = ?",
	})
}

// inspectBy returns the document of the row with the id, and beside it the lists of
// the queries, which get the row's number.
func inspectBy(tx *Tx, id, query string, beside map[string]string) (map[string]any, error) {
	var n int64
	var doc json.RawMessage
	err := tx.QueryRow(query, id).Scan(&n, &doc)
	if errors.Is(err, ErrNoRow) {
		return nil, port.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	found := map[string]any{"record": doc}
	for name, query := range beside {
		list := []json.RawMessage{}
		rows := tx.Query(query, n)
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
