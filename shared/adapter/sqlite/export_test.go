package sqlite

import "github.com/sortie-dev/sortie/shared/domain/run"

// Waiting returns the number of changes that wait for the writer.
func (d *DB) Waiting() int { return len(d.queue) }

// Readers returns the number of idle connections for reads.
func (d *DB) Readers() int {
	d.readers.mu.Lock()
	defer d.readers.mu.Unlock()
	return len(d.readers.idle)
}

// StoreSteps are the migrations of the store.
func StoreSteps() []string { return storeSteps }

// Encode returns the stored form of a record.
func Encode(r run.Run) ([]byte, error) { return encode(&r) }

// Decode returns the record of a stored form.
var Decode = decodeRun
