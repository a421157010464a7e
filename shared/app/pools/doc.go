// Package pools has the use cases of pools: operators define, drain and read them, and Sortie
// keeps the machines of their replicas.
//
// What the room needs of runs it declares as Runs and ReplicaRuns. It commits no fact about a run
// by itself.
package pools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store stores pools, with the runs that use them and the jobs and models that they name.
type Store interface {
	port.PoolStore
	port.LeaseStore
	port.RunStore
	port.JobStore
	port.ResourceStore
	port.AccountStore
}

// Runs are the runs of the pools. All methods are safe for concurrent use.
type Runs interface {
	// Apply commits a fact about a run that was just read, and acts on it. It returns the newest
	// record.
	Apply(ctx context.Context, r run.Run, f run.Fact) (run.Run, error)
	// FillAll grants the free slots of a pool to queued runs. The sweep grants the rest.
	FillAll(ctx context.Context, tenant, pool string)
	// Facts reads what a run waits for.
	Facts(ctx context.Context, r run.Run) (explain.Facts, error)
	// InBudget calls do with the time that the request has left for its effects. It returns an
	// error if none is left.
	InBudget(ctx context.Context, do func(context.Context) error) error
	// KeepReplicas updates the replicas of a pool, or leaves them to a sweep.
	KeepReplicas(ctx context.Context, pool platform.PoolRef)
	// Describe asks the engines of a pool for their capabilities. ContextOf returns the largest
	// context that they have reported, in tokens; 0 if it is unknown.
	Describe(ctx context.Context, pool platform.Pool)
	ContextOf(ctx context.Context, pool platform.Pool) int
}

// ReplicaRuns creates and ends the runs of replicas.
type ReplicaRuns interface {
	// Apply is as in Runs.
	Apply(ctx context.Context, r run.Run, f run.Fact) (run.Run, error)
	// Create stores a new run with an idempotency key and the digest of its request. existing reports that the key was used;
	// created is then the run of its first use. Faults: those of a request for the run.
	Create(ctx context.Context, r run.Run, key, digest string) (created run.Run, existing bool, err error)
	// Refuse returns refusal, or the run of the first use of the key.
	Refuse(ctx context.Context, tenant string, key *port.IdempotencyKey, refusal error) (known run.Run, existing bool, err error)
}

// Config configures the pools of a deployment.
type Config struct {
	// Policy is the default policy of runs.
	Policy spec.Policy
	// Host has the images that are programs of the server's host.
	Host host.Programs
	// Runners has the runners, and the values of their settings, that pools can name.
	Runners platform.RunnerOffer
	// CheckPodDefaults returns the faults of the pod specification of a pool, each with its field.
	// nil accepts every specification.
	CheckPodDefaults func(document json.RawMessage) []*fault.Fault
	// Engines has the addresses that replicas of engines may have besides public ones.
	// MockEngine allows pools of the mock engine.
	Engines    guard.Policy
	MockEngine bool
	// FreePort returns a port of this host that no program listens on, for the replica of an
	// engine in a machine of Runners.Hosted; nil without such machines.
	FreePort func() (int, error)
	// Loopback is the address of such a replica; empty is 127.0.0.1.
	Loopback string
}

// common has what every use case of the room needs.
type common struct {
	store    Store
	clock    clock.Clock
	log      *slog.Logger
	capacity *capacity.Caches
	config   Config
}

func (s *common) now() time.Time { return clock.UTC(s.clock) }

// pageSize is the number of runs that are read at a time.
const pageSize = 100

// eachUnfinished calls do for each run of a tenant in one of the states, except for terminal
// states. It returns the first error of do.
func (s *common) eachUnfinished(ctx context.Context, tenant string, states []run.State, do func(run.Run) error) error {
	for _, state := range slices.DeleteFunc(slices.Clone(states), run.State.Terminal) {
		page := port.Page{State: state, Limit: pageSize}
		for {
			runs, next, err := s.store.List(ctx, tenant, page)
			if err != nil {
				return fmt.Errorf("cannot list the runs: %w", err)
			}
			for _, r := range runs {
				if err := do(r); err != nil {
					return err
				}
			}
			if page.Cursor = next; next == "" {
				break
			}
		}
	}
	return nil
}

// placementOf returns the placement of the pool of a job: its machines are created there first.
// It is zero for an unknown job or pool.
func (s *common) placementOf(ctx context.Context, tenant, jobID string) (platform.Placement, error) {
	j, err := s.store.LoadJob(ctx, tenant, jobID)
	if err == nil {
		var in platform.Pool
		if in, err = s.capacity.Pools.Pool(ctx, tenant, j.Definition.Pool); err == nil {
			return in.Placement, nil
		}
	}
	if errors.Is(err, port.ErrNotFound) {
		return platform.Placement{}, nil
	}
	return platform.Placement{}, fmt.Errorf("cannot read the pool of job %s: %w", jobID, err)
}
