package delivery

import (
	"context"
	"slices"

	"github.com/sortie-dev/sortie/shared/port"
)

// Drained is the result of a Drain. Relayed counts the changes whose events are now in their
// streams, Left those that are still in the outbox.
type Drained struct {
	Relayed, Left int
	// Unreadable are those of Left that cannot be read.
	Unreadable []string
	// Tenants are those whose streams may have new events.
	Tenants []string
}

// drainPage is the number of changes of an outbox that are relayed together.
const drainPage = 100

// Drain relays the changes in the outbox, page by page, in their order, until ctx ends.
// Those that fail stay there, with all later ones of their tenants. done is called for
// the changes that were relayed, if it is not nil. Where the outbox and the feed share a
// database, a change leaves the outbox in the commit that appends its events.
func (s *Relay) Drain(ctx context.Context, outbox port.Outbox, read func(port.StoredChange) Change, done func([]Change)) (Drained, error) {
	var d Drained
	commits, _ := outbox.(port.CommitOutbox)
	joined, apart := false, false
	failed := map[string]bool{}
	for after := ""; ; {
		stored, next, err := outbox.Stored(ctx, after, drainPage)
		if err != nil {
			return d, err
		}
		changes := make([]Change, 0, len(stored))
		for _, c := range stored {
			if change := read(c); failed[tenantOf(change)] {
				d.Left++
			} else {
				changes = append(changes, change)
			}
		}
		relayed := s.relay(ctx, changes, commits)
		joined, apart = joined || len(relayed.removed) > 0, apart || relayed.apart
		var ids []string
		gone := slices.DeleteFunc(changes, func(c Change) bool {
			left := slices.Contains(relayed.Redeliver, c.ID) || slices.Contains(relayed.SetAside, c.ID)
			if !left {
				ids = append(ids, c.ID)
				return false
			}
			d.Left++
			if !slices.Contains(relayed.Unreadable, c.ID) {
				failed[tenantOf(c)] = true
			}
			return true
		})
		rest := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(relayed.removed, id) })
		if err := outbox.Published(ctx, rest...); err != nil {
			return d, err
		}
		d.Relayed += len(ids)
		d.Tenants, d.Unreadable = append(d.Tenants, relayed.Tenants...), append(d.Unreadable, relayed.Unreadable...)
		if done != nil {
			done(gone)
		}
		if after = next; after == "" || ctx.Err() != nil {
			if after == "" && (joined || apart) {
				s.settled.Store(!apart && (s.settled.Load() || d.Left == len(d.Unreadable)))
			}
			slices.Sort(d.Tenants)
			d.Tenants = slices.Compact(d.Tenants)
			return d, ctx.Err()
		}
	}
}

// tenantOf returns the tenant of a change.
func tenantOf(c Change) string {
	if len(c.Notes) > 0 {
		return c.Notes[0].Tenant
	}
	return c.Run.Tenant
}
