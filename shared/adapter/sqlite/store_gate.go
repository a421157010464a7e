package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// StartGate implements port.Store.
func (s *Store) StartGate(ctx context.Context, pool string) (g run.StartGate, err error) {
	var doc []byte
	err = s.db.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow("SELECT doc FROM gates WHERE pool = ?", pool).Scan(&doc)
	})
	switch {
	case errors.Is(err, ErrNoRow):
		return run.StartGate{Pool: pool}, nil
	case err == nil:
		err = json.Unmarshal(doc, &g)
	}
	return g, wrap(err, "read the start gate of pool", pool)
}

// SetStartGate implements port.Store.
func (s *Store) SetStartGate(ctx context.Context, g run.StartGate) error {
	return wrap(s.db.Write(ctx, func(tx *Tx) error { return setGate(tx, &g) }), "store the start gate of pool", g.Pool)
}

// setGate stores a gate if its version is the stored one. It ignores nil.
func setGate(tx *Tx, g *run.StartGate) error {
	if g == nil {
		return nil
	}
	next := *g
	next.Version++
	doc, err := encode(&next)
	if err != nil {
		return fmt.Errorf("cannot encode the start gate of pool %s: %w", g.Pool, err)
	}
	changed, err := tx.Exec(`INSERT INTO gates (pool, version, doc) SELECT ?1, ?2, ?3 WHERE ?4 = 0
		ON CONFLICT DO NOTHING`, g.Pool, next.Version, doc, g.Version)
	if err == nil && changed == 0 && g.Version > 0 {
		changed, err = tx.Exec("UPDATE gates SET version = ?, doc = ? WHERE pool = ? AND version = ?",
			next.Version, doc, g.Pool, g.Version)
	}
	if err == nil && changed == 0 {
		return &port.Conflict{}
	}
	return err
}
