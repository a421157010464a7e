package port

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// ErrNoSlot is the answer to a commit that would take a slot which is not free,
// or which somebody in line is waiting for. Nothing of the commit was applied.
var ErrNoSlot = errors.New("the pool has no free slot")

// ErrConflict is the answer to a commit that lost its race. Nothing of it was
// applied; whoever commits reads again and decides again.
var ErrConflict = errors.New("the record has changed")

// ErrKeyTaken is the answer to a Create under an idempotency key that has
// another digest.
var ErrKeyTaken = errors.New("the idempotency key stands for another request")

// Store keeps runs, their events, leases, queues and idempotency keys.
//
// Reads see every commit that returned before they began, but for those that
// look for runs nobody named: List, Due, WithMachine, OutputsDue, Purge, and
// Pools and Mend of a pool that is new to them. Those may miss the commits of the
// last moment, where the store says so; what they give is then as it was when
// they looked at it. A sweep comes again. Any method may be called from anywhere
// at once. A commit that returned nil is durable; one that
// returned an error other than ErrConflict and ErrNoSlot may have been applied,
// and whoever made it reads again. Nobody retries inside the store but against
// passing faults of its database, within the deadline of ctx. Faults are
// Unavailable and StoreFull. A record whose ExpiresAt has passed is not found,
// but by Load, Due and OutputsDue as long as bytes of it are kept.
type Store interface {
	// Create writes a new run with its events, at version 1. With a key that is
	// known, nothing is written: existing is the run of the key's first use,
	// ErrKeyTaken where its digest is another. ErrConflict where the run's id
	// exists.
	Create(ctx context.Context, first Write, key *IdempotencyKey) (existing *run.Run, err error)
	// Load reads a run by its id, Find by its task id. ErrNotFound. What they
	// return is the caller's to copy and not to change.
	Load(ctx context.Context, ref run.Ref) (run.Run, error)
	Find(ctx context.Context, tenant, taskID string) (run.Run, error)
	// Commit applies all writes or none. Each run must still have the version
	// it was decided on, else *Conflict, which is ErrConflict; it is then one
	// higher. Where a write's Beat has Judged, and the run's item is not open
	// with that At, it is the same *Conflict.
	Commit(ctx context.Context, writes ...Write) error
	// Events reads a run's events with a number above after, in order, at most
	// limit of them.
	Events(ctx context.Context, ref run.Ref, after, limit int) ([]run.Event, error)
	// List reads a tenant's runs, the newest first.
	List(ctx context.Context, tenant string, page Page) (runs []run.Run, next string, err error)

	// Beat notes a heartbeat: one conditional write on the open item of the
	// same attempt and worker, which sets At, Progress and Message; nil and
	// empty keep what was, and an At before the stored one keeps the stored
	// one. The other fields of b are not looked at, and the record stays as it
	// is. It returns the item as it then is. ErrNotFound where no such item is
	// open.
	Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error)
	// LastBeat reads the item; ErrNotFound where none is open.
	LastHeartbeat(ctx context.Context, ref run.Ref) (run.Heartbeat, error)
	// Reception is what was noted last about whether callbacks can be received;
	// its zero value where nothing was. NoteReception replaces it.
	Reception(ctx context.Context) (Reception, error)
	RecordReception(ctx context.Context, r Reception) error

	// Line reads who waits for a slot of the pool, the first in line first, at
	// most limit of them. The order is by Slot.Since, then by run id.
	Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error)
	// Position counts how many stand before the run in its line; 0 is the first
	// in line. ErrNotFound where it is in none.
	Position(ctx context.Context, r run.Run) (int, error)
	// Pools tells each pool that has a lease or a line.
	Pools(ctx context.Context) ([]PoolUse, error)
	// Mend makes the leases and the line of one pool what the records say, and
	// tells how many rows it changed.
	Reconcile(ctx context.Context, tenant, pool string) (int, error)

	// Due reads the runs whose execution should have acted by now, the longest
	// overdue first.
	Due(ctx context.Context, now time.Time, limit int) ([]run.Ref, error)
	// WithMachine tells where the runs in ContainerCreating and Running are whose
	// machine is known, ordered by tenant and id, after the one given.
	WithMachine(ctx context.Context, after run.Ref, limit int) ([]Placement, error)
	// OutputsDue reads the runs that have bytes which are to be deleted by now:
	// see run.Run's BytesDue.
	OutputsDue(ctx context.Context, now time.Time, limit int) ([]run.Ref, error)
	// Purge forgets records, with events and keys, that have expired by now and
	// of which no bytes are left, at most limit of them, and tells how many.
	Purge(ctx context.Context, now time.Time, limit int) (int, error)
}

// Write is what a decision does to the store.
type Write struct {
	// Run is the record to write. Its Version is the one it was decided on.
	Run       run.Run
	Events    []run.Event
	Lease     run.LeaseChange
	Heartbeat run.HeartbeatChange
}

// WriteOf makes the write of a decision.
func WriteOf(d run.Decision) Write {
	return Write{Run: d.Run, Events: d.Events, Lease: d.Lease, Heartbeat: d.Heartbeat}
}

// Placement is which machine a run's attempt has, as its record says.
type Placement struct {
	Run       run.Ref
	State     run.State
	Attempt   int
	MachineID string
}

// PlacementOf is the run's; without a MachineID where none is known.
func PlacementOf(r run.Run) Placement {
	return Placement{Run: r.Ref(), State: r.State, Attempt: r.Attempt.Number, MachineID: r.Attempt.MachineID}
}

// Reception is since when callbacks can be received, and when that was last
// seen. Both are zero where nobody has looked.
type Reception struct{ Since, ProbedAt time.Time }

// IdempotencyKey is a client's own name for a request.
type IdempotencyKey struct {
	// Key is 1 to 255 characters.
	Key string
	// Digest tells whether a second request is the first one again.
	Digest string
}

// Conflict says which run of a commit was changed meanwhile. It is ErrConflict.
type Conflict struct{ Ref run.Ref }

func (c *Conflict) Error() string {
	return fmt.Sprintf("run %s: %v", c.Ref.ID, ErrConflict)
}

// Unwrap gives ErrConflict.
func (c *Conflict) Unwrap() error { return ErrConflict }

// Page is a part of a list.
type Page struct {
	// State filters; empty is all.
	State run.State
	// Cursor is the next of the page before; empty is the first page.
	Cursor string
	// Limit is 1 to 1000.
	Limit int
}

// PoolUse is how a pool stands.
type PoolUse struct {
	Tenant, Pool string
	Held, Queued int
}
