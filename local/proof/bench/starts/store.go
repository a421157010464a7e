package starts

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// The delays of the calls that a start makes. They have the order of magnitude of DynamoDB, and
// of a Step Functions step with its function. Calls of several starts overlap, and their
// conditional writes conflict, as in a deployment.
const (
	readDelay   = 4 * time.Millisecond
	commitDelay = 12 * time.Millisecond
	stepDelay   = 40 * time.Millisecond
)

// delayedStore is a store whose calls are delayed.
type delayedStore struct{ port.Store }

// Load implements port.Store.
func (s delayedStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	time.Sleep(readDelay)
	return s.Store.Load(ctx, ref)
}

// Create implements port.Store.
func (s delayedStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	time.Sleep(commitDelay)
	return s.Store.Create(ctx, first, key, with...)
}

// Commit implements port.Store.
func (s delayedStore) Commit(ctx context.Context, writes ...port.Write) error {
	time.Sleep(commitDelay)
	return s.Store.Commit(ctx, writes...)
}

// LoadPool implements port.Store.
func (s delayedStore) LoadPool(ctx context.Context, ref platform.PoolRef) (platform.Pool, error) {
	time.Sleep(readDelay)
	return s.Store.LoadPool(ctx, ref)
}

// StartLimiter implements port.Store.
func (s delayedStore) StartLimiter(ctx context.Context, pool string) (fleet.StartLimiter, error) {
	time.Sleep(readDelay)
	return s.Store.StartLimiter(ctx, pool)
}

// SetStartLimiter implements port.Store.
func (s delayedStore) SetStartLimiter(ctx context.Context, g fleet.StartLimiter) error {
	time.Sleep(commitDelay)
	return s.Store.SetStartLimiter(ctx, g)
}

// WarmMachines implements port.Store.
func (s delayedStore) WarmMachines(ctx context.Context, ref platform.PoolRef) ([]platform.WarmMachine, error) {
	time.Sleep(readDelay)
	return s.Store.WarmMachines(ctx, ref)
}

// SaveWarm implements port.Store.
func (s delayedStore) SaveWarm(ctx context.Context, w platform.WarmMachine) error {
	time.Sleep(commitDelay)
	return s.Store.SaveWarm(ctx, w)
}
