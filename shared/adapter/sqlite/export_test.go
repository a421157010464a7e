package sqlite

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

// Encode and Decode convert records to and from their stored form.
var (
	Encode = encode
	Decode = decodeRun
)
