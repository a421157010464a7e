package dynamo

import (
	stdbytes "bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Create implements port.Store. It also returns a conflict if another run has the task id and
// that run's own id differs from it.
func (s *Store) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	c, err := s.changeOf(first, 1)
	if err != nil {
		return nil, wrap(err, "create run", first.Run.ID)
	}
	others, err := s.changesOf(with)
	if err != nil {
		return nil, err
	}
	var use *nameUse
	if key != nil {
		use = &nameUse{key: keyOf(pkKey(first.Run.Tenant, key.Key), sortKey), digest: key.Digest, idempotency: true}
	}
	task, ledger := taskOf(c), s.ledger(append([]*change{c}, others...))
	err = s.retryOutdated(ctx, func() error {
		leases, err := s.leases(ctx, append([]*change{c}, others...))
		if err != nil {
			return err
		}
		var parts []*part
		if use != nil {
			parts = append(parts, use.part(s, c))
		}
		updated, err := updates(others, leases)
		if err != nil {
			return err
		}
		moved, err := ledger.parts(ctx)
		if err != nil {
			return err
		}
		return s.write(ctx, slices.Concat(parts, s.creation(c, task, leases), updated, leases.parts, results(append(others, c)), moved))
	})
	if err == nil && use != nil && use.existing != nil {
		return use.existing, nil
	}
	return nil, wrap(err, "create run", first.Run.ID)
}

// taskOf returns the use of the task id of a new run, or nil if the task id is the run's id.
func taskOf(c *change) *nameUse {
	if c.Run.TaskID == c.Run.ID {
		return nil
	}
	return &nameUse{key: keyOf(pkTask(c.Run.Tenant, c.Run.TaskID), sortTask)}
}

// creation returns the parts that create a run under its task id.
func (s *Store) creation(c *change, task *nameUse, leases *leases) (parts []*part) {
	if task != nil {
		parts = append(parts, task.part(s, c))
	}
	created := c.creates(s)
	for _, attribute := range slotAttributes {
		if at, ok := leases.held[slotOf{c, attribute}]; ok {
			created.put[attribute] = number(int64(at.number))
		}
	}
	parts = append(parts, created)
	if heartbeat := c.heartbeat(); heartbeat != nil {
		parts = append(parts, heartbeat)
	} else if c.before != nil {
		parts = append(parts, &part{key: heartbeatKey(c.Run.Ref()), remove: true}) // the expired run's
	}
	return parts
}

// nameUse is a name that a new run reserves: an idempotency key, or a task id
// that differs from the run's id.
type nameUse struct {
	key         item
	digest      string
	idempotency bool
	// before is the item of a use by a deleted run.
	before item
	// existing is the run of a known idempotency key.
	existing *run.Run
}

// part reserves the name unless an existing run uses it.
func (n *nameUse) part(s *Store, c *change) *part {
	put := item{attrRun: text(c.Run.ID), attrBorn: bytes(born(c.Run)), schema.TTL: number(nameExpiry(c.Run))}
	if n.idempotency {
		put[attrDigest] = text(n.digest)
	}
	maps.Copy(put, n.key)
	p := &part{put: put}
	if n.before == nil {
		p.absent(schema.Partition.Name)
	} else {
		p.where(attrRun, "=", n.before[attrRun])
		p.where(attrBorn, "=", n.before[attrBorn])
	}
	p.refused = func(ctx context.Context, is item) error {
		n.before = is
		if is == nil {
			return errAgain
		}
		r, err := s.nameHolder(ctx, c.Run.Tenant, is)
		switch {
		case errors.Is(err, port.ErrNotFound):
			return errAgain // it is free again
		case err != nil:
			return err
		case !n.idempotency:
			if r.Ref() == c.Run.Ref() {
				return errAgain // the part of the run returns the reason
			}
			return &port.Conflict{Ref: c.Run.Ref()}
		case textOf(is[attrDigest]) != n.digest:
			return port.ErrKeyTaken
		case stdbytes.Equal(bytesOf(is[attrBorn]), born(c.Run)) && r.ID == c.Run.ID && s.isOurs(ctx, c):
			return errApplied
		}
		n.existing = &r
		return nil
	}
	return p
}

// isOurs reports whether this change created the run.
func (s *Store) isOurs(ctx context.Context, c *change) bool {
	is, err := s.get(ctx, runKey(c.Run.Ref()), true)
	return err == nil && stdbytes.Equal(bytesOf(is[attrNonce]), c.nonce)
}

// nameHolder returns the run that reserved the name. It returns ErrNotFound if that run was
// deleted, even if another run has its id now.
func (s *Store) nameHolder(ctx context.Context, tenant string, name item) (run.Run, error) {
	r, err := s.load(ctx, run.Ref{Tenant: tenant, ID: textOf(name[attrRun])}, s.alive)
	if err == nil && !stdbytes.Equal(born(r), bytesOf(name[attrBorn])) {
		return run.Run{}, port.ErrNotFound
	}
	return r, err
}

// nameExpiry returns when the table's TTL may delete a name, in Unix seconds: after twice the
// longest life that the run's policy allows, the retention, and a week. A name must last as
// long as its run, whose end is unknown when the name is reserved. Writing the name again at
// the end would cost as much as the run's last commit.
func nameExpiry(r run.Run) int64 {
	p := r.Policy
	tries := p.Retry.MaxAttempts + p.Retry.MaxFurtherStarts + 1
	life := longestAction(r.Actions) +
		time.Duration(tries)*(p.QueueTimeout+p.StartTimeout+p.TimeLimit+p.CancelGrace+p.Retry.MaxDelay)
	from := r.CreatedAt
	if r.ScheduledAt.After(from) {
		from = r.ScheduledAt
	}
	const week = 7 * 24 * time.Hour
	return from.Add(2*life+week).Unix() + int64((p.OutputRetention+p.RecordRetention)/time.Second)
}

// heldName returns the part that keeps the task id of a held run for a year after the next check
// of its retention, which writes it again; nil for another run.
func (c *change) heldName() *part {
	r := c.Run
	if !r.Held || r.TaskID == r.ID {
		return nil
	}
	put := item{attrRun: text(r.ID), attrBorn: bytes(born(r)), schema.TTL: number(r.BytesDue().Add(limit.Retention).Unix())}
	maps.Copy(put, keyOf(pkTask(r.Tenant, r.TaskID), sortTask))
	return &part{put: put}
}

// longestAction returns the longest time that a run may wait because of a violated constraint.
func longestAction(a *spec.Actions) time.Duration {
	if a == nil {
		return 0
	}
	longest := spec.ActionLimit
	for _, action := range a.Each {
		longest = max(longest, action.Limit)
	}
	if a.OnViolation != nil {
		longest = max(longest, a.OnViolation.Limit)
	}
	return longest
}
