package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/port"
)

// StartLimiter implements port.Store.
func (s *Store) StartLimiter(ctx context.Context, pool string) (g fleet.StartLimiter, err error) {
	var doc []byte
	err = s.db.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow("SELECT doc FROM gates WHERE pool = ?", pool).Scan(&doc)
	})
	switch {
	case errors.Is(err, ErrNoRow):
		return fleet.StartLimiter{Pool: pool}, nil
	case err == nil:
		err = json.Unmarshal(doc, &g)
	}
	return g, wrap(err, "read the start limiter of pool", pool)
}

// SetStartLimiter implements port.Store.
func (s *Store) SetStartLimiter(ctx context.Context, g fleet.StartLimiter) error {
	return wrap(s.db.Write(ctx, func(tx *Tx) error { return setLimiter(tx, &g) }), "store the start limiter of pool", g.Pool)
}

// setLimiter stores a limiter if its version is the stored one. It ignores nil.
func setLimiter(tx *Tx, g *fleet.StartLimiter) error {
	if g == nil {
		return nil
	}
	next := *g
	next.Version++
	doc, err := encode(&next)
	if err != nil {
		return fmt.Errorf("cannot encode the start limiter of pool %s: %w", g.Pool, err)
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
