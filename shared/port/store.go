package port

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// ErrNoSlot is returned, as a *NoSlot, by a commit that would take a slot although none is free
// or other runs are queued, or that would exceed Slot.QueueLimit. Nothing of the commit was
// applied.
var ErrNoSlot = errors.New("no free slot")

// ErrConflict is returned by a commit that lost a race. Nothing of it was
// applied; the caller loads the record and decides again.
var ErrConflict = errors.New("the record has changed")

// CommitTries bounds how often a lost race is decided again. Only a defect loses that often.
const CommitTries = 100

// ErrKeyTaken is returned by Create and FindByKey for an idempotency key that was
// used with another digest.
var ErrKeyTaken = errors.New("the idempotency key was used for another request")

// Store stores runs with their events, leases, queues and idempotency keys, and the resources of
// tenants. A use case takes the parts that it uses; an adapter implements all of them.
//
// Reads by id are strongly consistent. List, Due, WithMachine, OutputsDue and Purge, and Pools
// and Reconcile for a pool that they have not seen before, may be eventually consistent: they
// can miss recent commits, and a later sweep finds them. Store is safe for concurrent use.
//
// A commit that returned nil is durable. A commit that returned an error other than
// ErrConflict, ErrNoSlot and ErrNoBudget may have been applied; the caller loads the record to
// find out. A store retries only transient faults of its database, within the deadline of ctx.
// Its faults are Unavailable and StoreFull. A record past its ExpiresAt is not found, except by
// Load, Due and OutputsDue while it has stored bytes.
type Store interface {
	RunStore
	HeartbeatStore
	LeaseStore
	SweepStore
	ReceptionStore
	ClaimStore
	JobStore
	PoolStore
	AccountStore
	UsageStore
	NoteStore
	ResourceStore
}

// RunStore stores runs with their events and idempotency keys.
type RunStore interface {
	// Create writes a new run with its events, at version 1. If the key is known, nothing is
	// written: existing is the run of its first use, or the error is ErrKeyTaken if the digest
	// differs. ErrConflict means that the run's id exists. The writes of with are committed with
	// the new run, as by Commit. A write that takes a slot may return ErrNoSlot even for a known
	// key.
	Create(ctx context.Context, first Write, key *IdempotencyKey, with ...Write) (existing *run.Run, err error)
	// Load returns a run by its id. Find returns a run by its task id or its id. Both return
	// ErrNotFound for an unknown run. A task id is never the id of another run. The caller may
	// copy the result but must not change it.
	Load(ctx context.Context, ref run.Ref) (run.Run, error)
	Find(ctx context.Context, tenant, id string) (run.Run, error)
	// FindByKey returns the run of the key's first use, as Create does. The error is
	// ErrNotFound for an unknown key, and ErrKeyTaken if the digest differs.
	FindByKey(ctx context.Context, tenant string, key IdempotencyKey) (run.Run, error)
	// Commit applies all writes or none. Each run must have the version on which its decision
	// was made; the commit increments it. Otherwise the error is a *Conflict, which wraps
	// ErrConflict. The same error is returned if a write has Heartbeat.Evaluated and the run
	// has no heartbeat item with that At.
	Commit(ctx context.Context, writes ...Write) error
	// Events returns at most limit events of a run with a number above after, in order.
	Events(ctx context.Context, ref run.Ref, after, limit int) ([]run.Event, error)
	// List returns a page of a tenant's runs, the newest first. The work for a page is bounded:
	// a page with a state may have fewer runs than its limit, or be empty, although next is
	// set.
	List(ctx context.Context, tenant string, page Page) (runs []run.Run, next string, err error)
}

// HeartbeatStore stores the last heartbeats of workers, each beside its run.
type HeartbeatStore interface {
	// Heartbeat records a heartbeat with one conditional write on the heartbeat item of the
	// same attempt and worker. It sets At, Previous, Progress and Message, and adds b.Received
	// (0 or 1) to Received. Nil and empty values, and an At before the stored one, keep the
	// stored values. Other fields of b are ignored, and the run's record is not written. A call
	// that is repeated after a fault may count twice. Heartbeat returns the item, or
	// ErrNotFound if there is no such item.
	Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error)
	// LastHeartbeat returns the heartbeat item of the run, or ErrNotFound without one.
	LastHeartbeat(ctx context.Context, ref run.Ref) (run.Heartbeat, error)
	// HeartbeatsDue returns the runs whose heartbeat item has a DueAt by now. Paging works as
	// in Due. It may miss the newest commits and heartbeats.
	HeartbeatsDue(ctx context.Context, now time.Time, after string, limit int) (refs []run.Ref, next string, err error)
}

// LeaseStore has the leases and the queues of pools, jobs and keys, which commits of runs change,
// and the pace of starts.
type LeaseStore interface {
	// Queue returns at most limit runs that are queued for a slot of the pool,
	// ordered by Slot.Order and then by run id.
	Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error)
	// QueueState returns the state of the queue for a run that joins it with the slot's pool,
	// priority and key. A commit that enqueues a slot with a key and a round is conditional on
	// Slot.Behind: if another run of the key has joined since QueueState, the error is a *Conflict.
	QueueState(ctx context.Context, tenant string, slot platform.Slot) (platform.QueueState, error)
	// Holders returns at most limit runs that hold a slot of the pool, in any order.
	Holders(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error)
	// QueueLength returns the number of queued runs of the pool, but at most most (at least 1).
	// It may be eventually consistent.
	QueueLength(ctx context.Context, tenant, pool string, most int) (int, error)
	// QueueAhead returns the number of queued runs of the slot's pool before the slot in
	// Slot.Order, but at most most (at least 1). It may be eventually consistent.
	QueueAhead(ctx context.Context, tenant string, slot platform.Slot, most int) (int, error)
	// Pools returns the use of each pool with a lease or a queue.
	Pools(ctx context.Context) ([]PoolUse, error)
	// Reconcile makes the leases and the queue of one pool match the records. It returns the
	// number of changed rows.
	Reconcile(ctx context.Context, tenant, pool string) (int, error)

	// StartLimiter returns the start limiter of a pool, or a zero limiter with the pool's name.
	// SetStartLimiter stores a changed limiter and increments its version. The error is ErrConflict
	// if the stored version differs from that of g.
	StartLimiter(ctx context.Context, pool string) (fleet.StartLimiter, error)
	SetStartLimiter(ctx context.Context, g fleet.StartLimiter) error
}

// SweepStore lists the overdue and expired records that sweeps read, and purges them.
type SweepStore interface {
	// Due returns a page of at most limit runs whose execution should have acted by now, the
	// longest overdue first, to the hour. after is the next of the previous page; empty means
	// the first page. A page may have fewer runs than limit, or be empty, although next is set;
	// next is empty at the end. A record that cannot be decoded is due, and does not hide
	// others.
	Due(ctx context.Context, now time.Time, after string, limit int) (due []run.Ref, next string, err error)
	// WithMachine returns at most limit runs in ContainerCreating and Running whose machine is
	// known, ordered by tenant and id, after the run after.
	WithMachine(ctx context.Context, after run.Ref, limit int) ([]Placement, error)
	// OutputsDue returns a page of the runs with bytes to delete by now; see run.Run.BytesDue.
	// Paging works as in Due.
	OutputsDue(ctx context.Context, now time.Time, after string, limit int) (due []run.Ref, next string, err error)
	// Purge removes at most limit records, with events and keys, that have expired by now and
	// have no stored bytes. It also removes accounts whose PurgeAt has passed. It returns the
	// number of removed records.
	Purge(ctx context.Context, now time.Time, limit int) (int, error)
}

// ReceptionStore stores whether workers can reach the API.
type ReceptionStore interface {
	// Reception returns the recorded reception, or its zero value. RecordReception replaces it
	// if it is still before. It returns ErrConflict if the stored value is neither before nor
	// after.
	Reception(ctx context.Context) (Reception, error)
	RecordReception(ctx context.Context, before, after Reception) error
}

// ClaimStore stores whether the store is complete.
type ClaimStore interface {
	// Claim records that the store has the record of every machine: from then on, no run needs
	// a machine without a record. It may be repeated. Claimed reports whether this store was
	// claimed. A store whose content was copied from another one, such as a restored table, is
	// not claimed.
	Claim(ctx context.Context) error
	Claimed(ctx context.Context) (bool, error)
}

// Write is the part of a commit for one run.
type Write struct {
	// Run is the record to write. Its Version is the one on which the decision was made.
	Run    run.Run
	Events []run.Event
	// Lease changes the pool of Run.Slot, JobLease that of Run.JobSlot, and KeyLease that of
	// Run.KeySlot.
	Lease, JobLease, KeyLease run.LeaseChange
	Heartbeat                 run.HeartbeatChange
	// Limiter, if not nil, is stored with the run, as by SetStartLimiter. If it was changed
	// meanwhile, the error is a *Conflict without a run.
	Limiter *fleet.StartLimiter
	// Warm, if not nil, is stored with the run, as by SaveWarm. If it was changed meanwhile,
	// the error is a *Conflict without a run.
	Warm *platform.WarmMachine
	// Ledger, if not nil, changes the accounts of the run's reservation. If an account does not
	// have enough left, the error is a *NoBudget.
	Ledger *budget.Change
}

// WriteOf returns the write of a decision.
func WriteOf(d run.Decision) Write {
	return Write{Run: d.Run, Events: d.Events, Lease: d.Lease, JobLease: d.JobLease, KeyLease: d.KeyLease, Heartbeat: d.Heartbeat, Ledger: d.Ledger}
}

// Result returns the last result of the run's job that the write stores. ok is false if the
// write does not end the run, or if Run.Result has none.
func (w Write) Result() (run.Result, bool) {
	for _, e := range w.Events {
		if e.Ends() {
			return w.Run.Result()
		}
	}
	return run.Result{}, false
}

// Placement is the machine of a run's attempt according to the record.
type Placement struct {
	Run     run.Ref
	State   run.State
	Attempt int
	Machine Machine
}

// PlacementOf returns the placement of a run; Machine is zero if it is
// unknown.
func PlacementOf(r run.Run) Placement {
	return Placement{Run: r.Ref(), State: r.State, Attempt: r.Attempt.Number, Machine: r.Attempt.Machine}
}

// Reception records the received canaries. At is the time of the last one. Since is the time of
// the first one in a series without a long gap. Both are zero without a canary.
type Reception struct {
	Since, At time.Time
	// Crowded: too many attempts run to forward their heartbeats.
	Crowded bool
}

// IdempotencyKey is a client's key for a request.
type IdempotencyKey struct {
	// Key is 1 to 255 characters.
	Key string
	// Digest identifies the content of the request.
	Digest string
}

// NoSlot names the pool in which a commit found no free slot, or no room in the queue. It wraps
// ErrNoSlot.
type NoSlot struct{ Pool string }

func (n *NoSlot) Error() string { return fmt.Sprintf("pool %s: %v", n.Pool, ErrNoSlot) }

// Unwrap returns ErrNoSlot.
func (n *NoSlot) Unwrap() error { return ErrNoSlot }

// Conflict names the run that made a commit fail. Ref is zero if it was a start limiter or a warm
// machine. It wraps ErrConflict.
type Conflict struct{ Ref run.Ref }

func (c *Conflict) Error() string {
	return fmt.Sprintf("run %s: %v", c.Ref.ID, ErrConflict)
}

// Unwrap returns ErrConflict.
func (c *Conflict) Unwrap() error { return ErrConflict }

// Page selects a page of a list.
type Page struct {
	// State selects runs in that state; empty means all. JobID selects the runs of a job without
	// those that are children of others, or with Children only those; empty means all runs.
	State    run.State
	JobID    string
	Children bool
	// Before starts the first page at the runs that were created before it; zero starts it at the
	// newest run.
	Before time.Time
	// Cursor is the next of the previous page; empty means the first page.
	Cursor string
	// Limit is 1 to 1000.
	Limit int
}

// PoolSize is the use of a pool and its limit; 0 means no limit.
type PoolSize struct {
	PoolUse
	Limit int
}

// PoolUse is the number of held and queued runs of a pool.
type PoolUse struct {
	Tenant, Pool string
	Held, Queued int
}
