package sqlite

import "context"

// probeBytes is more than a commit of a run needs. So the space that the probe frees is enough
// for a commit.
const probeBytes = 64 << 10

// Probe writes and removes a row of 64 KiB, each in a commit of its own. It fails if the next
// commits would fail: on a full disk, and in a file that cannot be written. The free pages stay
// in the file for other writes.
func (s *Store) Probe(ctx context.Context) error {
	err := s.db.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec("INSERT OR REPLACE INTO probe (one, filler) VALUES (1, zeroblob(0 + ?))", probeBytes)
		return err
	})
	if err == nil {
		err = s.db.Write(ctx, func(tx *Tx) error {
			_, err := tx.Exec("DELETE FROM probe")
			return err
		})
	}
	return wrap(err, "write to", "the store")
}
