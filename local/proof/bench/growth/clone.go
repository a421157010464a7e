package growth

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// ended are the rows of a run that has ended: of tables runs and executions. They are what
// remains after the relay, except for the run's events in the stream of its tenant.
type ended struct {
	tenant         string
	is             identity
	doc, history   template
	state          string
	version        int64
	expires, purge *int64
	output         *int64 // its log is to be deleted
	job            *string
	execution      executionRow
}

type executionRow struct {
	definition, input, status, code, cause string
	ended, due, calls, entered             int64
}

// endedOf reads the rows of an ended run.
func endedOf(ctx context.Context, db *sqlite.DB, tenant, id string) (*ended, error) {
	e := &ended{tenant: tenant}
	err := db.Read(ctx, func(tx *sqlite.Tx) error {
		var doc, history string
		var created, other int64
		err := tx.QueryRow(`SELECT CAST(doc AS TEXT), trim(history_events(history), '[]'), created_at, state, version, expires_at, purge_at, output_due, job,
			(act_by IS NOT NULL) + (machine IS NOT NULL) + (pool IS NOT NULL) + (place IS NOT NULL)
				+ (SELECT count(*) FROM events WHERE run = n) + (SELECT count(*) FROM keys WHERE run = n)
				+ (SELECT count(*) FROM beats WHERE run = n) + (SELECT count(*) FROM side_slots WHERE run = n)
			FROM runs WHERE tenant = ? AND id = ?`, tenant, id).
			Scan(&doc, &history, &created, &e.state, &e.version, &e.expires, &e.purge, &e.output, &e.job, &other)
		if err != nil {
			return err
		}
		if other != 0 {
			return fmt.Errorf("run %s has %d values that are not copied", id, other)
		}
		e.is = identityOf(tenant, id, time.Unix(0, created).UTC())
		if e.doc, err = templateOf(doc, e.is); err != nil {
			return err
		}
		if e.history, err = templateOf(history, e.is); err != nil {
			return err
		}
		x := &e.execution
		return tx.QueryRow("SELECT definition, input, status, ended, due, calls, entered, code, cause FROM executions WHERE name = ?", e.is.execution).
			Scan(&x.definition, &x.input, &x.status, &x.ended, &x.due, &x.calls, &x.entered, &x.code, &x.cause)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the rows of run %s: %w", id, err)
	}
	return e, nil
}

// small returns the rows with a small document and no events, so that more of them fit on a
// disk. Their columns and indexes are the same.
func (e *ended) small(ctx context.Context, db *sqlite.DB) (*ended, error) {
	var doc []byte
	err := db.Read(ctx, func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT doc FROM runs WHERE tenant = ? AND id = ?", e.tenant, e.is.id).Scan(&doc)
	})
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(doc, &fields); err != nil {
		return nil, err
	}
	kept := []string{"tenant", "runId", "taskId", "workspace", "work", "state", "version", "createdAt", "enteredAt", "endedAt", "expiresAt"}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return !slices.Contains(kept, name) })
	if doc, err = json.Marshal(fields); err != nil {
		return nil, err
	}
	little := *e
	little.history = nil
	little.doc, err = templateOf(string(doc), e.is)
	return &little, err
}

// cloneBatch is the number of runs of one commit.
const cloneBatch = 2000

// clone writes n runs like e. at returns the time of creation of run i.
func (e *ended) clone(ctx context.Context, db *sqlite.DB, n int, at func(i int) time.Time, random func() uint64) error {
	for first := 0; first < n; first += cloneBatch {
		last := min(first+cloneBatch, n)
		err := db.WriteRelaxed(ctx, func(tx *sqlite.Tx) error {
			for i := first; i < last; i++ {
				created := at(i)
				id := string(appendULID([]byte("job_"), created, random))
				if err := e.insert(tx, identityOf(e.tenant, id, created), random); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("cannot write ended runs: %w", err)
		}
	}
	return nil
}

func (e *ended) insert(tx *sqlite.Tx, as identity, random func() uint64) error {
	shift := as.created.Sub(e.is.created)
	later := func(at *int64) any {
		if at == nil {
			return nil
		}
		return *at + int64(shift)
	}
	var part any
	if e.history != nil {
		events := e.history.write(nil, as, shift, random)
		part = append(binary.AppendUvarint([]byte{0}, uint64(len(events))), events...)
	}
	_, err := tx.Exec(`INSERT INTO runs (tenant, id, task_id, created_at, version, state, expires_at, purge_at, output_due, doc, job, history)
		VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, joined(NULL, ?11, 1))`,
		e.tenant, as.id, as.created.UnixNano(), e.version, e.state, later(e.expires), later(e.purge), later(e.output), e.doc.write(nil, as, shift, random), e.job, part)
	if err != nil {
		return err
	}
	x := &e.execution
	_, err = tx.Exec("INSERT INTO executions (name, definition, input, status, ended, due, calls, entered, code, cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		as.execution, x.definition, x.input, x.status, x.ended+shift.Milliseconds(), x.due, x.calls, x.entered, x.code, x.cause)
	return err
}
