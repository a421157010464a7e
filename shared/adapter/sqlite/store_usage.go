package sqlite

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// usageSteps are the migrations of the usage of tenants; see DB.Migrate. An entry of a session has
// the value 1 in sessions. The id of an entry begins with its day.
var usageSteps = []string{`
CREATE TABLE usage (
	tenant    TEXT NOT NULL,
	sessions  INTEGER NOT NULL,
	id        TEXT NOT NULL,
	purge_at  INTEGER NOT NULL,
	tasks     INTEGER NOT NULL,
	input     INTEGER NOT NULL,
	cached    INTEGER NOT NULL,
	output    INTEGER NOT NULL,
	time_ms   INTEGER NOT NULL,
	cost_nano INTEGER NOT NULL,
	PRIMARY KEY (tenant, sessions, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_purge ON usage (purge_at);
`}

// addUsage adds the entries of a commit.
func addUsage(tx *Tx, entries []usage.Entry) error {
	for _, e := range entries {
		v := e.Values()
		_, err := tx.Exec(`INSERT INTO usage (tenant, sessions, id, purge_at, tasks, input, cached, output, time_ms, cost_nano)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks, input = input + excluded.input, cached = cached + excluded.cached,
				output = output + excluded.output, time_ms = time_ms + excluded.time_ms, cost_nano = cost_nano + excluded.cost_nano`,
			e.Tenant, e.Session != "", e.ID(), nanos(e.PurgeAt()), v[0], v[1], v[2], v[3], v[4], v[5])
		if err != nil {
			return err
		}
	}
	return nil
}

// Usage implements port.UsageStore.
func (s *Store) Usage(ctx context.Context, tenant, from, to string, sessions bool, after string, limit int) (found []usage.Entry, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		rows := tx.Query(`SELECT id, tasks, input, cached, output, time_ms, cost_nano FROM usage
			WHERE tenant = ? AND sessions = ? AND id > ? AND id < ? ORDER BY id LIMIT 0 + ?`,
			tenant, sessions, max(from, after), to+"$", max(limit, 0)) // '$' follows '#', which ends the day
		for rows.Next() {
			var id string
			v := usage.Sum{}.Values()
			if err := rows.Scan(&id, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]); err != nil {
				return err
			}
			name, err := usage.ParseID(id)
			if err != nil {
				return err
			}
			found = append(found, usage.Entry{Tenant: tenant, Name: name, Sum: usage.SumOf(v)})
		}
		return rows.Err()
	})
	return found, wrap(err, "read the usage of", tenant)
}

// purgeUsage deletes entries after their retention, at most limit.
func (s *Store) purgeUsage(ctx context.Context, now time.Time, limit int) error {
	return s.db.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(`DELETE FROM usage WHERE (tenant, sessions, id) IN
			(SELECT tenant, sessions, id FROM usage WHERE purge_at <= ? LIMIT 0 + ?)`, nanos(now), max(limit, 0))
		return err
	})
}
