package port

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// PoolStore stores the records of pools. A pool can have leases and a queue without a record.
//
// Reads by id are strongly consistent. PoolRecords and PoolsDue may be eventually consistent:
// they can miss recent commits, and PoolsDue can return a pool that was changed or deleted
// since. The errors of a commit are those of Store.
type PoolStore interface {
	// SavePool writes a pool and increments its version. Version 0 creates the pool. Otherwise
	// the version and CreatedAt must be the stored ones. If not, the error is ErrConflict. The
	// notes are stored with the pool.
	SavePool(ctx context.Context, p platform.Pool, notes ...Note) error
	// LoadPool returns a pool, or ErrNotFound.
	LoadPool(ctx context.Context, ref platform.PoolRef) (platform.Pool, error)
	// DeletePool removes the pool if the stored version and CreatedAt are those of p.
	// Otherwise, and for an unknown pool, the error is ErrConflict. Leases and queue stay. The
	// notes are stored with the deletion.
	DeletePool(ctx context.Context, p platform.Pool, notes ...Note) error
	// PoolRecords returns a page of a tenant's pools, ordered by id. It uses only the page's
	// Cursor and Limit.
	PoolRecords(ctx context.Context, tenant string, page Page) (pools []platform.Pool, next string, err error)
	// WarmMachines returns the warm machines of a pool in any order. It is strongly consistent.
	WarmMachines(ctx context.Context, ref platform.PoolRef) ([]platform.WarmMachine, error)
	// SaveWarm writes a warm machine and increments its version. Version 0 creates it;
	// otherwise the version must be the stored one. If not, the error is ErrConflict, or nil if
	// the same machine is already stored. DeleteWarm deletes it under the same condition; it
	// returns nil if the machine has no record.
	SaveWarm(ctx context.Context, w platform.WarmMachine) error
	DeleteWarm(ctx context.Context, w platform.WarmMachine) error
	// PoolsDue returns a page of at most limit pools with a Due by now, the longest overdue
	// first. It may return a pool up to a second late. Paging works as in Store.Due.
	PoolsDue(ctx context.Context, now time.Time, after string, limit int) (due []platform.PoolRef, next string, err error)
}
