package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/port"
)

// checkMachines returns the faults of the job that runs the replicas of a pool. The job must
// have a program that the caller may run, permit enough runs at a time, and use a runner that
// reports addresses.
func (s *common) checkMachines(ctx context.Context, who port.Identity, m platform.EngineMachines) (found []*fault.Fault, err error) {
	const field = "engine.machines.job"
	wrong := func(format string, args ...any) {
		f := fault.New(fault.Unprocessable, format, args...)
		f.Field = field
		found = append(found, f)
	}
	j, err := s.store.LoadJob(ctx, who.Tenant, m.Job)
	if errors.Is(err, port.ErrNotFound) {
		wrong("unknown job %q, want a job of GET /v1/jobs", m.Job)
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read job %s: %w", m.Job, err)
	}
	is := s.config.Host.Run(j, s.config.Policy)
	if is.Work.Program == nil {
		wrong("the job %s has no program, want the program of a server", m.Job)
	}
	if c := is.Constraints; c != nil && c.MaxConcurrentRuns > 0 && c.MaxConcurrentRuns < m.Count {
		wrong("the job %s permits %d runs at a time, want a job that permits the %d of count", m.Job, c.MaxConcurrentRuns, m.Count)
	}
	if err := s.config.Host.Check(who, is.Work); err != nil {
		f := fault.Of(err)
		if f == nil {
			return nil, err
		}
		refused := *f
		refused.Field = field
		found = append(found, &refused)
	}
	where, err := s.placementOf(ctx, who.Tenant, m.Job)
	if err != nil {
		return nil, err
	}
	if !s.config.Runners.Reaches(where) {
		found = append(found, fault.Invalid(field, "the runner %s of the job's pool reports no addresses of machines, want a job in a pool of %s",
			cmp.Or(where.Runner, s.config.Runners.Default(), "of the deployment"), cmp.Or(strings.Join(slices.Concat(s.config.Runners.Hosted, s.config.Runners.Addressed), " or "), "another deployment")))
	}
	return found, nil
}

// keepMachines updates the replicas of an engine pool. If Sortie runs them, it first creates
// their replica set.
func (s *Pools) keepMachines(ctx context.Context, p platform.Pool) error {
	if p.Engine == nil {
		return nil
	}
	if p.Engine.Machines != nil {
		if err := s.capacity.Replicas.Ensure(ctx, p.Ref()); err != nil {
			return err
		}
	}
	s.runs.KeepReplicas(ctx, p.Ref())
	return nil
}

// replicaHealths returns the state of the replicas of an engine pool. Replicas that Sortie runs
// have their record. The others are those of health.
func (s *Pools) replicaHealths(ctx context.Context, p platform.Pool) (found []balance.ReplicaHealth, err error) {
	if p.Engine == nil {
		return nil, nil
	}
	if p, err = s.capacity.Replicas.Served(ctx, p); err != nil {
		return nil, err
	}
	if found, err = s.health.OfPool(ctx, p); err != nil {
		return nil, err
	}
	if p.Engine.Machines == nil {
		return found, nil
	}
	asked := map[string]balance.ReplicaHealth{}
	for _, r := range found {
		asked[r.ID] = r
	}
	set, err := s.capacity.Replicas.Read(ctx, p.Ref())
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return nil, err
	}
	found = nil
	for _, r := range set.Replicas {
		h, ok := asked[r.ID]
		if !ok {
			h.ID, h.Reason = r.ID, "it is "+string(r.Phase)
		}
		h.Machine = &r
		found = append(found, h)
	}
	return found, nil
}

// EngineHealths has the health of the replicas of pools: the dispatcher of the process,
// AskEngines, or NoEngines.
type EngineHealths interface {
	OfPool(ctx context.Context, p platform.Pool) ([]balance.ReplicaHealth, error)
	// Slots returns the smallest number of slots that a replica of a pool reports; 0 if none does.
	Slots(ctx context.Context, p platform.Pool) int
}

// NoEngines is for a process that asks no engines: the health of a pool then has only the
// replicas that Sortie runs.
type NoEngines struct{}

// OfPool implements EngineHealths.
func (NoEngines) OfPool(context.Context, platform.Pool) ([]balance.ReplicaHealth, error) {
	return nil, nil
}

// Slots implements EngineHealths.
func (NoEngines) Slots(context.Context, platform.Pool) int { return 0 }

type askedEngines struct {
	engines balance.Engines
	store   Store
}

// AskEngines is for a process without a dispatcher that asks the engines. store has the tasks.
func AskEngines(engines balance.Engines, store Store) EngineHealths {
	return askedEngines{engines, store}
}

// OfPool implements EngineHealths: it asks the replicas of a pool whether they accept requests.
// Held counts the tasks of all dispatchers.
func (e askedEngines) OfPool(ctx context.Context, p platform.Pool) ([]balance.ReplicaHealth, error) {
	held, err := runsOf(ctx, e.store, p.Tenant, p.ID, e.store.Holders)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, balance.AskTime)
	defer cancel()
	found := make([]balance.ReplicaHealth, len(p.Engine.Replicas))
	var asked sync.WaitGroup
	for i, r := range p.Engine.Replicas {
		found[i].ID = r.ID
		for _, task := range held {
			if task.Attempt.Replica == r.ID {
				found[i].Held++
			}
		}
		engine, err := e.engines(p.Tenant, *p.Engine, r)
		if err != nil {
			found[i].Reason = err.Error()
			continue
		}
		asked.Go(func() { found[i].EngineHealth = balance.HealthOf(ctx, engine) })
	}
	asked.Wait()
	return found, nil
}

// Slots implements EngineHealths.
func (e askedEngines) Slots(ctx context.Context, p platform.Pool) int {
	return balance.ReportedSlots(ctx, e.engines, p)
}
