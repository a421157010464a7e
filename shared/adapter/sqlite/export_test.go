package sqlite

// Waiting is how many changes wait for the writer.
func (d *DB) Waiting() int { return len(d.queue) }
