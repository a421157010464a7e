package dynamo

import (
	stdbytes "bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// poolsKey returns the partition key of a tenant's pools in the list index. Their sort keys are
// their ids.
func poolsKey(tenant string) string { return within(tenant, "pools", "") }

func poolKey(ref platform.PoolRef) item { return keyOf(pkPool(ref.Tenant, ref.ID), sortRecord) }

// SavePool implements port.Store.
func (s *Store) SavePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	noted, err := s.noteParts(notes)
	if err == nil {
		err = s.savePool(ctx, p, noted)
	}
	return wrap(err, "store pool", p.ID)
}

func (s *Store) savePool(ctx context.Context, p platform.Pool, noted []*part) error {
	before := p.Version
	p.Version++
	doc, err := s.pack(p)
	if err != nil {
		return fmt.Errorf("cannot encode the pool: %w", err)
	}
	nonce := binary.BigEndian.AppendUint64(nil, s.config.Random())
	put := poolKey(p.Ref())
	put[attrVersion], put[attrMade] = number(p.Version), moment(p.CreatedAt)
	put[attrDoc], put[attrNonce] = document(doc), bytes(nonce)
	put[attrList], put[attrBorn] = text(poolsKey(p.Tenant)), bytes([]byte(p.ID))
	if due := p.Due(); !due.IsZero() {
		put[attrDue], put[attrAt] = text(dueKey(dueDrain, "0")), number(wholeSecond(due))
	}
	is := &part{put: put, refused: func(_ context.Context, is item) error {
		if stdbytes.Equal(bytesOf(is[attrNonce]), nonce) {
			return errApplied
		}
		return port.ErrConflict
	}}
	is.replaces(before, p.CreatedAt)
	return s.retryOutdated(ctx, func() error { return s.write(ctx, append([]*part{is}, noted...)) })
}

// replaces adds the condition that the stored item has this version and creation time. Version
// 0 means that no item is stored.
func (p *part) replaces(version int64, created time.Time) {
	if version == 0 {
		p.absent(schema.Partition.Name)
		return
	}
	p.where(attrVersion, "=", number(version))
	p.where(attrMade, "=", moment(created))
}

// LoadPool implements port.Store.
func (s *Store) LoadPool(ctx context.Context, ref platform.PoolRef) (p platform.Pool, err error) {
	is, err := s.get(ctx, poolKey(ref), true)
	if err == nil && is == nil {
		err = port.ErrNotFound
	}
	if err == nil {
		p, err = poolOf(is)
	}
	return p, wrap(err, "read pool", ref.ID)
}

func poolOf(is item) (p platform.Pool, err error) {
	if err := format.Unpack(documentOf(is[attrDoc]), &p); err != nil {
		tenant, id := named(textOf(is[schema.Partition.Name]))
		return platform.Pool{}, fmt.Errorf("pool %s of %s: %w", id, tenant, fault.Wrap(err, fault.Internal, "unreadable stored pool"))
	}
	return p, nil
}

// DeletePool implements port.Store.
func (s *Store) DeletePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	noted, err := s.noteParts(notes)
	if err != nil {
		return wrap(err, "delete pool", p.ID)
	}
	gone := &part{key: poolKey(p.Ref()), remove: true, refused: func(context.Context, item) error { return port.ErrConflict }}
	gone.replaces(max(p.Version, 1), p.CreatedAt)
	return wrap(s.write(ctx, append([]*part{gone}, noted...)), "delete pool", p.ID)
}

// PoolRecords implements port.Store. It returns the same faults as List. It may miss the newest
// commits.
func (s *Store) PoolRecords(ctx context.Context, tenant string, page port.Page) ([]platform.Pool, string, error) {
	pools, next, err := documentPage(ctx, s, listing{kind: "pools 1", scope: tenant}, poolsKey(tenant), sortRecord, page, poolOf)
	return pools, next, wrap(err, "list the pools of", tenant)
}

// PoolsDue implements port.Store. It reads only the index, whose times are whole seconds.
func (s *Store) PoolsDue(ctx context.Context, now time.Time, after string, limit int) ([]platform.PoolRef, string, error) {
	entries, next, err := s.dueEntries(ctx, now, after, limit, sortRecord, 1, dueDrain)
	if err != nil {
		return nil, "", wrap(err, "read", "the pools that are to be drained")
	}
	due := make([]platform.PoolRef, len(entries))
	for i, e := range entries {
		due[i].Tenant, due[i].ID = named(textOf(e[schema.Partition.Name]))
	}
	return due, next, nil
}
