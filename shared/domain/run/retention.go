package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// The retention of a held run is checked at these intervals. A run that is unpinned stays for at
// least unpinnedFor.
const (
	newestCheck = 24 * time.Hour
	pinnedCheck = 30 * 24 * time.Hour
	unpinnedFor = 24 * time.Hour
	// A pin comes too late for an output that expires within pinMargin: the output may be deleted
	// before the pin is stored. A commit and the difference of two clocks take less.
	pinMargin = 2 * time.Minute
	// A run that other jobs come after is held until their runs have ended, for at most awaitedFor.
	awaitedCheck = time.Hour
	awaitedFor   = 30 * 24 * time.Hour
	// A child is held until its parent has ended, whose results name it, and parentEndedFor longer.
	parentCheck    = 24 * time.Hour
	parentFor      = fanLimit + 24*time.Hour
	parentEndedFor = 24 * time.Hour
)

// Pin says that a run is kept until it is unpinned.
type Pin struct {
	At time.Time `json:"at"`
	// By is the subject of the client.
	By string `json:"by"`
}

// stays reports whether the run is held at its end.
func (r Run) stays() bool {
	return r.Pin != nil || r.Policy.Newest > 0 && !r.Skipped || len(r.Followers) > 0 || r.HasParent()
}

// MayBeAwaited reports whether a run that has ended is held while jobs that come after it, or its
// parent, have not ended.
func (r Run) MayBeAwaited(now time.Time) bool {
	if r.HasParent() {
		return now.Before(r.EndedAt.Add(parentFor))
	}
	return len(r.Followers) > 0 && now.Before(r.EndedAt.Add(awaitedFor))
}

// firstCheck returns when the retention of a held run is checked first: when the first part of
// it would expire.
func (r Run) firstCheck() time.Time {
	p := r.Policy
	first := min(p.OutputRetention, p.RecordRetention)
	if p.LogRetention > 0 {
		first = min(first, p.LogRetention)
	}
	return r.EndedAt.Add(first)
}

// setRetention holds a run that has ended, or sets when its parts expire; least is the earliest
// such time. An output that has expired stays expired.
func (d *draft) setRetention(hold bool, least time.Time) {
	after := func(start time.Time, retention time.Duration) time.Time {
		if hold || retention == 0 {
			return time.Time{}
		}
		return later(start.Add(retention), least)
	}
	d.Held = hold
	d.ExpiresAt = after(d.EndedAt, d.Policy.RecordRetention)
	d.LogsExpireAt = after(d.EndedAt, d.Policy.LogRetention)
	if d.Output != nil && !d.Output.Expired(d.now) {
		output := *d.Output
		output.ExpiresAt = after(output.AcceptedAt, d.Policy.OutputRetention)
		d.Output = &output
	}
}

// PinChanged: a client pinned a run, in any state, or unpinned it. An unpinned run expires as if
// it had never been pinned, but not within a day. Fault OutputExpired for a pin between the expiry of
// the output and its deletion: it could not keep the output. A pin after the deletion keeps the rest.
type PinChanged struct {
	Pinned bool
	By     Actor
}

func (f PinChanged) actor(Run) Actor { return f.By }

func (f PinChanged) apply(d *draft) error {
	if d.Expired(d.now) {
		return fault.New(fault.NotFound, "no such task, or it has expired")
	}
	if f.Pinned == (d.Pin != nil) {
		return nil
	}
	if o := d.Output; f.Pinned && o != nil && o.DeletedAt.IsZero() && o.DeleteRequestedAt.IsZero() && o.Expired(d.now.Add(pinMargin)) {
		return fault.New(fault.OutputExpired, "the output expires at %s, too late to keep it; its deletion follows, want a pin afterwards to keep the record and the logs",
			o.ExpiresAt.Format(time.RFC3339))
	}
	event := EventUnpinned
	if d.Pin = nil; f.Pinned {
		event, d.Pin = EventPinned, &Pin{d.now, f.By.Subject}
	}
	d.emit(Event{Type: event})
	if d.State.Terminal() {
		d.setRetention(d.stays(), d.now.Add(unpinnedFor))
		d.Deletion = Deletion{NotBefore: d.now.Add(unpinnedFor)}
	}
	return nil
}

// RetentionChecked: a held run was compared with the newest runs of its job, and with the runs that
// come after it. Unless it is one of the former, awaited by one of the latter, or pinned, it expires
// when its policy says, which may be now.
type RetentionChecked struct {
	Newest, Awaited bool
	// ParentEndedAt is when the parent of a child ended; zero for other runs.
	ParentEndedAt time.Time
}

func (f RetentionChecked) apply(d *draft) error {
	if !d.Held || d.BytesDue().After(d.now) {
		return nil
	}
	d.changed, d.Deletion = true, Deletion{}
	switch {
	case d.Pin != nil:
		d.Deletion.NotBefore = d.now.Add(pinnedCheck)
	case f.Awaited && d.HasParent():
		d.Deletion.NotBefore = d.now.Add(parentCheck)
	case f.Awaited:
		d.Deletion.NotBefore = d.now.Add(awaitedCheck)
	case f.Newest:
		d.Deletion.NotBefore = d.now.Add(newestCheck)
	case !f.ParentEndedAt.IsZero():
		d.setRetention(false, f.ParentEndedAt.Add(parentEndedFor))
	default:
		d.setRetention(false, time.Time{})
	}
	return nil
}

// sooner returns the earlier time. A zero time is later than any other.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
