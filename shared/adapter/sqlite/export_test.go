package sqlite

// Waiting is how many changes wait for the writer.
func (d *DB) Waiting() int { return len(d.queue) }

// Readers is how many connections wait for who reads.
func (d *DB) Readers() int {
	d.readers.mu.Lock()
	defer d.readers.mu.Unlock()
	return len(d.readers.idle)
}

// StoreSteps are the store's migrations.
func StoreSteps() []string { return storeSteps }

// Encode and Decode are how records are kept.
var (
	Encode = encode
	Decode = decodeRun
)
