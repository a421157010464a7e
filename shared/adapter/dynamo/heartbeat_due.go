package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// heartbeatShards is the number of partition keys of heartbeat items in the due index.
// Only opening and closing an item writes its entry, so few are enough.
const heartbeatShards = 4

// dueFields are the attributes of a heartbeat item that DueAt needs.
var dueFields = []string{schema.Partition.Name, heartbeatAt, heartbeatTimeout}

// HeartbeatsDue implements port.Store. It reads each item whose first due time has passed, for
// half a read unit. An entry that moved with the heartbeats would cost three write units for
// each of them.
func (s *Store) HeartbeatsDue(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	refs, next, err := s.heartbeatsDue(ctx, now, after, limit)
	return refs, next, wrap(err, "read", "the overdue heartbeats")
}

func (s *Store) heartbeatsDue(ctx context.Context, now time.Time, after string, limit int) (refs []run.Ref, next string, err error) {
	entries, next, err := s.dueEntries(ctx, now, after, limit, sortHeartbeat, heartbeatShards, dueHeartbeat)
	if err != nil {
		return nil, "", err
	}
	known := map[string]bool{}
	var keys []item
	for _, e := range entries {
		pk := textOf(e[schema.Partition.Name])
		if !known[pk] { // the entry of a reopened item may be read twice
			known[pk] = true
			keys = append(keys, keyOf(pk, sortHeartbeat))
		}
	}
	for part := range slices.Chunk(keys, batch) {
		err := s.fetch(ctx, part, false, dueFields, func(is item) error {
			if due := heartbeatOf(is).DueAt(); !due.IsZero() && !due.After(now) {
				tenant, id := named(textOf(is[schema.Partition.Name]))
				refs = append(refs, run.Ref{Tenant: tenant, ID: id})
			}
			return nil
		})
		if err != nil {
			return nil, "", err
		}
	}
	return refs, next, nil
}
