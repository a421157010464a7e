package run

import "time"

// Shed: the store is larger than its limit, so the run is forgotten before its retention is
// over: its output now, and its record with its input and logs after that. A run that has
// not ended, or has effects left to do, is kept. It is no event, because events are removed
// for the same reason.
type Shed struct{}

func (Shed) apply(d *draft) error {
	if !d.State.Terminal() || len(d.Execution.Pending) > 0 || !d.Execution.ActBy.IsZero() || d.Expired(d.now) {
		return nil
	}
	if d.Output != nil && d.Output.ExpiresAt.After(d.now) {
		output := *d.Output
		output.ExpiresAt = d.now
		d.Output = &output
	}
	d.ExpiresAt, d.Deletion.NotBefore, d.changed = d.now, time.Time{}, true
	return nil
}
