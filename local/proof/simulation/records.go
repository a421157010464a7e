package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// rows caches the stored runs, read directly from the database and not through
// the store. refresh runs after every step, so it reads only if something was
// written, and decodes only documents that have changed.
type rows struct {
	db      *sqlite.DB
	written int64
	// runs is sorted by creation, newest first. Its elements are not modified.
	runs  []*run.Run
	docs  map[string]doc
	pools []port.PoolUse
}

// doc is a record's document and its decoded form.
type doc struct {
	text []byte
	run  *run.Run
}

// refresh reads what was written since the last call.
func (r *rows) refresh(ctx context.Context, p *process) error {
	written := p.db.Stats().Rows
	if r.db == p.db && r.written == written {
		return nil
	}
	r.db = nil // an error invalidates the cache
	if err := p.db.Read(ctx, r.read); err != nil {
		return fmt.Errorf("cannot read the records: %w", err)
	}
	var err error
	if r.pools, err = p.store.Pools(ctx); err != nil {
		return fmt.Errorf("cannot read the pools: %w", err)
	}
	r.db, r.written = p.db, written
	return nil
}

func (r *rows) read(tx *sqlite.Tx) error {
	found := make([]*run.Run, 0, len(r.runs)+1) // callers may still use the previous slice
	rows := tx.Query("SELECT id, doc FROM runs WHERE tenant = ? ORDER BY created_at DESC, n DESC", client.Tenant)
	for rows.Next() {
		var id string
		var text []byte
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		known := r.docs[id]
		if !bytes.Equal(known.text, text) {
			known = doc{text, &run.Run{}}
			if err := json.Unmarshal(text, known.run); err != nil {
				return err
			}
			r.docs[id] = known
		}
		found = append(found, known.run)
	}
	r.runs = found
	return rows.Err()
}

// records returns the stored runs, newest first.
func (w *world) records(ctx context.Context) []*run.Run {
	if err := w.rows.refresh(ctx, w.process); err != nil {
		w.fail("%v", err)
	}
	return w.rows.runs
}

// checkList compares the store's list with the rows.
func (w *world) checkList(ctx context.Context) {
	listed, _, err := w.process.store.List(ctx, client.Tenant, port.Page{Limit: 1000})
	if err != nil {
		w.fail("cannot list the records: %v", err)
	}
	if !slices.EqualFunc(listed, w.records(ctx), func(a run.Run, b *run.Run) bool { return a.ID == b.ID && a.Version == b.Version }) {
		w.fail("got %d listed runs, want the %d stored ones", len(listed), len(w.records(ctx)))
	}
}
