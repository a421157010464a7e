package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// WarmMachines implements port.Store.
func (s *Store) WarmMachines(ctx context.Context, ref platform.PoolRef) (found []platform.WarmMachine, err error) {
	docs, err := s.docs(ctx, "SELECT doc FROM warm_machines WHERE tenant = ? || '' AND pool = ? || '' ORDER BY id", ref.Tenant, ref.ID)
	for _, doc := range docs {
		var w platform.WarmMachine
		if err = json.Unmarshal(doc, &w); err != nil {
			break
		}
		found = append(found, w)
	}
	return found, wrap(err, "read the warm machines of pool", ref.ID)
}

// SaveWarm implements port.Store.
func (s *Store) SaveWarm(ctx context.Context, w platform.WarmMachine) error {
	return wrap(s.db.Write(ctx, func(tx *Tx) error { return setWarm(tx, &w) }), "store warm machine", w.ID)
}

// DeleteWarm implements port.Store.
func (s *Store) DeleteWarm(ctx context.Context, w platform.WarmMachine) error {
	return wrap(s.db.Write(ctx, func(tx *Tx) error {
		deleted, err := tx.Exec("DELETE FROM warm_machines WHERE tenant = ? AND pool = ? AND id = ? AND version = ?",
			w.Tenant, w.Pool, w.ID, w.Version)
		if err != nil || deleted > 0 {
			return err
		}
		var others int
		err = tx.QueryRow("SELECT count(*) FROM warm_machines WHERE tenant = ? AND pool = ? AND id = ?", w.Tenant, w.Pool, w.ID).Scan(&others)
		if err == nil && others > 0 {
			return port.ErrConflict
		}
		return err
	}), "delete warm machine", w.ID)
}

// setWarm stores a warm machine if its version is the stored one. It ignores nil.
func setWarm(tx *Tx, w *platform.WarmMachine) error {
	if w == nil {
		return nil
	}
	next := *w
	next.Version++
	doc, err := encode(&next)
	if err != nil {
		return fmt.Errorf("cannot encode warm machine %s: %w", w.ID, err)
	}
	var changed int64
	if w.Version == 0 {
		changed, err = tx.Exec("INSERT INTO warm_machines (tenant, pool, id, version, doc) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			w.Tenant, w.Pool, w.ID, next.Version, doc)
	} else {
		changed, err = tx.Exec("UPDATE warm_machines SET version = ?, doc = ? WHERE tenant = ? AND pool = ? AND id = ? AND version = ?",
			next.Version, doc, w.Tenant, w.Pool, w.ID, w.Version)
	}
	if err == nil && changed == 0 {
		return &port.Conflict{}
	}
	return err
}
