package sqlite

// Waiting is how many changes wait for the writer.
func (d *DB) Waiting() int { return len(d.queue) }

// StoreSteps are the store's migrations.
func StoreSteps() []string { return storeSteps }

// Encode and Decode are how records are kept.
var (
	Encode = encode
	Decode = decodeRun
)
