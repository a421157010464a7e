package run

import "time"

// Shed: the store exceeds its limit, so the run is removed before its retention ends: its
// output now, then its record with input and logs. It changes nothing if the run has not ended,
// is held (except for its parent), or has pending effects. It emits no event, because events are removed for the same
// reason.
type Shed struct{}

func (Shed) apply(d *draft) error {
	if d.Child != nil && d.now.Sub(d.EndedAt) < shedChildAfter {
		return nil
	}
	if !d.State.Terminal() || len(d.Execution.Pending) > 0 || !d.Execution.ActBy.IsZero() || d.Expired(d.now) || d.Held && (d.Pin != nil || !d.HasParent()) {
		return nil
	}
	if d.Held {
		d.setRetention(false, d.now)
	}
	if d.Output != nil && d.Output.ExpiresAt.After(d.now) {
		output := *d.Output
		output.ExpiresAt = d.now
		d.Output = &output
	}
	d.ExpiresAt, d.Deletion.NotBefore, d.changed = d.now, time.Time{}, true
	return nil
}
