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

// rows is what the disk held at the last look: the runs as their rows have
// them, past all that a store keeps in memory. Every step is followed by a look,
// so it reads only where something was written since the last one, and decodes
// only what is another document than it was.
type rows struct {
	db      *sqlite.DB
	written int64
	// runs has the newest first. Nobody changes one.
	runs  []*run.Run
	docs  map[string]doc
	pools []port.PoolUse
}

// doc is a record's document, and what it says.
type doc struct {
	text []byte
	run  *run.Run
}

// look reads what was written since the last look.
func (r *rows) look(ctx context.Context, p *process) error {
	written := p.db.Stats().Rows
	if r.db == p.db && r.written == written {
		return nil
	}
	r.db = nil // an error leaves nothing that a later look may rely on
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
	found := make([]*run.Run, 0, len(r.runs)+1) // who has the last list is not disturbed
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

// records are the runs as the disk holds them, the newest first.
func (w *world) records(ctx context.Context) []*run.Run {
	if err := w.rows.look(ctx, w.process); err != nil {
		w.broken("%v", err)
	}
	return w.rows.runs
}

// checkList holds what the store lists to the rows.
func (w *world) checkList(ctx context.Context) {
	listed, _, err := w.process.store.List(ctx, client.Tenant, port.Page{Limit: 1000})
	if err != nil {
		w.broken("the records cannot be listed: %v", err)
	}
	if !slices.EqualFunc(listed, w.records(ctx), func(a run.Run, b *run.Run) bool { return a.ID == b.ID && a.Version == b.Version }) {
		w.broken("%d runs are listed, and %d are there, or they are others", len(listed), len(w.records(ctx)))
	}
}
