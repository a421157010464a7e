package dynamo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// commitTries limits how often a write is planned. A try fails if an item of its plan, such as
// a slot, has changed before the write.
const commitTries = 200

// Commit implements port.Store. It returns a conflict if a run was deleted. One transaction has
// room for about thirty writes.
func (s *Store) Commit(ctx context.Context, writes ...port.Write) error {
	if len(writes) == 0 {
		return nil
	}
	changes, err := s.changesOf(writes)
	if err != nil {
		return err
	}
	return wrap(s.commit(ctx, changes), "commit run", writes[0].Run.ID)
}

// changesOf encodes the writes of a commit.
func (s *Store) changesOf(writes []port.Write) ([]*change, error) {
	changes := make([]*change, len(writes))
	for i, w := range writes {
		var err error
		if changes[i], err = s.changeOf(w, w.Run.Version+1); err != nil {
			return nil, wrap(err, "commit run", w.Run.ID)
		}
	}
	return changes, nil
}

func (s *Store) commit(ctx context.Context, changes []*change) error {
	ledger := s.ledger(changes)
	return s.retryOutdated(ctx, func() error {
		leases, err := s.leases(ctx, changes)
		if errors.Is(err, port.ErrNoSlot) {
			// A version conflict is more useful to the caller than a missing
			// slot.
			if err := s.checkVersions(ctx, changes); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		parts, err := updates(changes, leases)
		if err != nil {
			return err
		}
		moved, err := ledger.parts(ctx)
		if err != nil {
			return err
		}
		return s.write(ctx, slices.Concat(parts, leases.parts, results(changes), moved))
	})
}

// updates returns the parts of the changed records, then those of the items beside them, such
// as heartbeats and start limiters.
func updates(changes []*change, l *leases) ([]*part, error) {
	var parts, beside []*part
	for _, c := range changes {
		updates := c.updates()
		l.note(c, updates[0])
		parts = append(parts, updates[0])
		beside = append(beside, updates[1:]...)
		if name := c.heldName(); name != nil {
			beside = append(beside, name)
		}
		if heartbeat := c.heartbeat(); heartbeat != nil {
			beside = append(beside, heartbeat)
		}
		if c.Limiter != nil {
			limiter, err := limiterPart(*c.Limiter)
			if err != nil {
				return nil, err
			}
			beside = append(beside, limiter)
		}
		if c.Warm != nil {
			warm, err := warmPart(*c.Warm)
			if err != nil {
				return nil, err
			}
			beside = append(beside, warm)
		}
	}
	return append(parts, beside...), nil
}

// retryOutdated calls try, which plans and writes, until it does not return errAgain. It returns
// fault.Unavailable after commitTries. errApplied counts as success.
func (s *Store) retryOutdated(ctx context.Context, try func() error) error {
	for n := range commitTries {
		err := try()
		if errors.Is(err, errApplied) {
			return nil
		}
		if !errors.Is(err, errAgain) {
			return err
		}
		if n < 2 {
			continue // the failed commit has usually read the outdated records again
		}
		if err := s.pause(ctx, s.jitter(2*time.Millisecond<<min(n, 5))); err != nil {
			return err
		}
	}
	return fault.New(fault.Unavailable, "too many concurrent changes; try again")
}

// checkVersions reads the records that were not read yet. It returns a conflict if the version
// of one differs.
func (s *Store) checkVersions(ctx context.Context, changes []*change) error {
	unread := slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return c.before != nil })
	keys := make([]item, len(unread))
	for i, c := range unread {
		keys[i] = runKey(c.Run.Ref())
	}
	found := map[string]item{}
	for part := range slices.Chunk(keys, batch) {
		if err := s.fetch(ctx, part, true, nil, func(is item) error {
			found[textOf(is[schema.Partition.Name])] = is
			return nil
		}); err != nil {
			return err
		}
	}
	for _, c := range unread {
		if err := c.refused(ctx, found[pkRun(c.Run.Ref())]); !errors.Is(err, errAgain) {
			return err
		}
	}
	return nil
}
