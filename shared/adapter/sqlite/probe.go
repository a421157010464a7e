package sqlite

import "context"

// probeBytes is more than a commit of a run needs. What the probe leaves free is therefore
// enough for one.
const probeBytes = 64 << 10

// Probe writes and removes a row of 64 KiB, each in a commit of its own, so that it fails
// where the next commits would: on a full disk, and in a file that cannot be written. The
// pages stay in the file, free for others.
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
