package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// ReplicaKind is the kind of the resources of replica sets. The id is that of the pool.
const ReplicaKind = "replicas"

func replicaRef(pool platform.PoolRef) port.ResourceRef {
	return port.ResourceRef{Tenant: pool.Tenant, Kind: ReplicaKind, ID: pool.ID}
}

// StoredSet is a replica set with the version of its record.
type StoredSet struct {
	fleet.ReplicaSet

	tenant  string
	version int64
}

// resource returns the record of the set. It is always due, so that every sweep reads it.
func (s StoredSet) resource() (port.Resource, error) {
	document, err := json.Marshal(s.ReplicaSet)
	if err != nil {
		return port.Resource{}, fmt.Errorf("cannot encode the replicas of pool %s: %w", s.Pool, err)
	}
	ref := replicaRef(platform.PoolRef{Tenant: s.tenant, ID: s.Pool})
	return port.Resource{ResourceRef: ref, Version: s.version, CreatedAt: s.CreatedAt, DueAt: s.CreatedAt, Document: document}, nil
}

// ReplicaSets reads and stores replica sets. It is safe for concurrent use.
type ReplicaSets struct {
	store port.ResourceStore
	clock clock.Clock
	known sync.Map // platform.PoolRef -> knownSet
}

// NewReplicaSets returns the replica sets in a store.
func NewReplicaSets(store port.ResourceStore, c clock.Clock) *ReplicaSets {
	return &ReplicaSets{store: store, clock: c}
}

type knownSet struct {
	StoredSet

	readAt time.Time
}

// Read reads the set of a pool, or returns port.ErrNotFound.
func (l *ReplicaSets) Read(ctx context.Context, pool platform.PoolRef) (StoredSet, error) {
	at := l.clock.Now()
	r, err := l.store.LoadResource(ctx, replicaRef(pool))
	if errors.Is(err, port.ErrNotFound) {
		l.known.Delete(pool)
		return StoredSet{}, err
	}
	if err != nil {
		return StoredSet{}, fmt.Errorf("cannot read the replicas of pool %s: %w", pool.ID, err)
	}
	s := StoredSet{tenant: pool.Tenant, version: r.Version}
	if err := json.Unmarshal(r.Document, &s.ReplicaSet); err != nil {
		return StoredSet{}, fault.Wrap(err, fault.Internal, "unreadable record of the replicas of pool %s", pool.ID)
	}
	l.known.Store(pool, knownSet{s, at})
	return s, nil
}

// Served returns a pool with the replicas to which it sends tasks. The replicas that Sortie
// runs were read at most poolAge ago. Other pools are returned unchanged.
func (l *ReplicaSets) Served(ctx context.Context, p platform.Pool) (platform.Pool, error) {
	if p.Engine == nil || p.Engine.Machines == nil {
		return p, nil
	}
	var set StoredSet
	found, ok := l.known.Load(p.Home())
	known, _ := found.(knownSet)
	if age := l.clock.Now().Sub(known.readAt); ok && age >= 0 && age < poolAge {
		set = known.StoredSet
	} else {
		var err error
		if set, err = l.Read(ctx, p.Home()); err != nil && !errors.Is(err, port.ErrNotFound) {
			return p, err
		}
	}
	engine := *p.Engine
	engine.Replicas = set.Serving(p)
	p.Engine = &engine
	return p, nil
}

// Save stores a set, or deletes it if it is empty and keepEmpty is false. It returns
// port.ErrConflict if the set has changed since it was read.
func (l *ReplicaSets) Save(ctx context.Context, s StoredSet, keepEmpty bool) error {
	r, err := s.resource()
	if err != nil {
		return err
	}
	saved, removed := []port.Resource{r}, []port.Resource(nil)
	if len(s.Replicas) == 0 && !keepEmpty {
		saved, removed = nil, saved
	}
	l.known.Delete(platform.PoolRef{Tenant: s.tenant, ID: s.Pool})
	if err := l.store.WriteResources(ctx, saved, removed); err != nil {
		return fmt.Errorf("cannot store the replicas of pool %s: %w", s.Pool, err)
	}
	return nil
}

// Ensure creates the replica set of a pool, so that sweeps find it. An existing set gets a new
// version, so that a sweep that has read the pool before does not delete it.
func (l *ReplicaSets) Ensure(ctx context.Context, pool platform.PoolRef) error {
	for range port.CommitTries {
		s, err := l.Read(ctx, pool)
		if errors.Is(err, port.ErrNotFound) {
			s, err = StoredSet{tenant: pool.Tenant, ReplicaSet: fleet.ReplicaSet{Pool: pool.ID, CreatedAt: clock.UTC(l.clock)}}, nil
		}
		if err != nil {
			return err
		}
		if err = l.Save(ctx, s, true); !errors.Is(err, port.ErrConflict) {
			return err
		}
	}
	return TooManyChanges()
}

// Update changes the record of a replica. current is false if the set no longer has the replica
// with this number and key.
func (l *ReplicaSets) Update(ctx context.Context, pool platform.PoolRef, of fleet.Replica, change func(fleet.Replica) fleet.Replica) (current bool, err error) {
	for range port.CommitTries {
		s, err := l.Read(ctx, pool)
		if errors.Is(err, port.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		current = false
		for i, r := range s.Replicas {
			if r.ID == of.ID && r.Number == of.Number && r.Key == of.Key {
				s.Replicas[i], current = change(r), true
			}
		}
		if !current {
			return false, nil
		}
		if err = l.Save(ctx, s, true); !errors.Is(err, port.ErrConflict) {
			return err == nil, err
		}
	}
	return false, TooManyChanges()
}
