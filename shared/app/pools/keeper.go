package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/crew"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Keeper reconciles the runs of the replicas of engine pools with the pools' settings. It stores
// each change of a replica set before it acts on it. Every step is idempotent: calls may overlap,
// and a process may stop at any time.
type Keeper struct {
	common
	runs   ReplicaRuns
	runner port.Runner
}

// NewKeeper returns the keeper of the replica sets in a store. runner returns the addresses of
// machines. known are the caches of the process that commits runs.
func NewKeeper(
	runs ReplicaRuns, store Store, c clock.Clock, log *slog.Logger, known *capacity.Caches, runner port.Runner, config Config,
) *Keeper {
	return &Keeper{common{store, c, log, known, config}, runs, runner}
}

// Reconcile reconciles the replicas of a pool with its settings. It returns nil if other calls win
// every race.
func (k *Keeper) Reconcile(ctx context.Context, pool platform.PoolRef) error {
	for range port.CommitTries {
		if err := k.reconcileOnce(ctx, pool); !errors.Is(err, port.ErrConflict) {
			return err
		}
	}
	return nil // other calls update them
}

// reconcileOnce is one try of Reconcile. The error is port.ErrConflict if the set has changed meanwhile.
func (k *Keeper) reconcileOnce(ctx context.Context, pool platform.PoolRef) error {
	set, err := k.capacity.Replicas.Read(ctx, pool)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := k.capacity.Pools.Read(ctx, pool)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return err
	}
	p.Tenant, p.ID = pool.Tenant, pool.ID
	before := set
	facts, err := k.facts(ctx, p, &set)
	if err != nil {
		return err
	}
	plan := fleet.PlanReplicas(p, set.ReplicaSet, facts, k.now())
	set.ReplicaSet = plan.Set
	for i, r := range plan.Start {
		if r.Port == 0 {
			if r.Port, err = k.portOf(ctx, p, r); err != nil {
				return err
			}
			plan.Start[i] = r
			set.Replicas[slices.IndexFunc(set.Replicas, func(one fleet.Replica) bool { return one.ID == r.ID })] = r
		}
	}
	hasMachines := p.Engine != nil && p.Engine.Machines != nil
	changed := !reflect.DeepEqual(set, before) //nolint:govet // the faults in it are data
	if changed || len(set.Replicas) == 0 && !hasMachines {
		if err := k.capacity.Replicas.Save(ctx, set, hasMachines); err != nil {
			return err
		}
	}
	var failed crew.Failures
	for _, r := range plan.End {
		failed.Add(k.end(ctx, p, r))
	}
	for _, r := range plan.Start {
		failed.Add(k.start(ctx, p, set.ReplicaSet, r))
	}
	for _, r := range plan.Locate {
		failed.Add(k.locate(ctx, p, r, *facts[r.ID].Run))
	}
	return failed.Join(ctx)
}

// facts reads the runs of the replicas of a set. If one is draining, it also counts the tasks
// of each replica. An ending replica may have no run id because another process created the
// run; facts then looks the run up by its idempotency key.
func (k *Keeper) facts(ctx context.Context, p platform.Pool, set *capacity.StoredSet) (map[string]fleet.ReplicaFacts, error) {
	facts, draining := map[string]fleet.ReplicaFacts{}, false
	set.Replicas = append([]fleet.Replica(nil), set.Replicas...)
	for i, r := range set.Replicas {
		draining = draining || r.Phase == fleet.ReplicaDraining
		if r.Phase == fleet.ReplicaEnding && r.Run == "" {
			found, err := k.store.FindByKey(ctx, p.Tenant, port.IdempotencyKey{Key: r.Key})
			if err == nil {
				r = r.Created(found)
				set.Replicas[i] = r
			} else if !errors.Is(err, port.ErrNotFound) {
				return nil, fmt.Errorf("cannot find the run of replica %s of pool %s: %w", r.ID, p.ID, err)
			}
		}
		if r.Run == "" {
			continue
		}
		found, err := k.store.Load(ctx, run.Ref{Tenant: p.Tenant, ID: r.Run})
		if err == nil {
			facts[r.ID] = fleet.ReplicaFacts{Run: &found}
		} else if !errors.Is(err, port.ErrNotFound) {
			return nil, fmt.Errorf("cannot read run %s: %w", r.Run, err)
		}
	}
	if !draining || p.Version == 0 {
		return facts, nil
	}
	holders, err := k.store.Holders(ctx, p.Tenant, p.ID, limit.PoolSlots)
	if err != nil {
		return nil, fmt.Errorf("cannot read the slots of pool %s: %w", p.ID, err)
	}
	for _, ref := range holders {
		task, err := k.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read run %s: %w", ref.ID, err)
		}
		f := facts[task.Attempt.Replica]
		f.Tasks++
		facts[task.Attempt.Replica] = f
	}
	return facts, nil
}

// portOf returns the port of a new server: a free port of a host that servers share, otherwise
// the requested port.
func (k *Keeper) portOf(ctx context.Context, p platform.Pool, r fleet.Replica) (int, error) {
	where, err := k.placementOf(ctx, p.Tenant, r.Job)
	if err != nil || k.config.FreePort == nil || !k.config.Runners.Shares(where) {
		return r.AskedPort, err
	}
	return k.config.FreePort()
}

// start creates the run of a replica and stores the run's id in the set. If the set no longer
// has the replica, start requests the end of the run.
func (k *Keeper) start(ctx context.Context, p platform.Pool, set fleet.ReplicaSet, r fleet.Replica) error {
	created, err := k.createReplica(ctx, p, set, r)
	if why, ok := errors.AsType[*fault.Fault](err); ok && why.Code != fault.Unavailable && why.Code != fault.Internal && why.Code != fault.Throttled {
		k.log.WarnContext(ctx, "the run of a replica was refused", "pool", p.ID, "replica", r.ID, "error", why.Error())
		_, err = k.capacity.Replicas.Update(ctx, p.Ref(), r, func(now fleet.Replica) fleet.Replica {
			if now.Run != "" {
				return now // another process has created it before
			}
			return now.Refused(why, k.now())
		})
		return err
	}
	if err != nil {
		return fmt.Errorf("cannot create the run of replica %s of pool %s: %w", r.ID, p.ID, err)
	}
	current, err := k.capacity.Replicas.Update(ctx, p.Ref(), r, func(now fleet.Replica) fleet.Replica { return now.Created(created) })
	if err != nil || current {
		return err
	}
	return k.end(ctx, p, r.Created(created))
}

// createReplica creates the run of a replica, or returns the run that already has its
// idempotency key.
func (k *Keeper) createReplica(ctx context.Context, p platform.Pool, set fleet.ReplicaSet, r fleet.Replica) (run.Run, error) {
	key := &port.IdempotencyKey{Key: r.Key}
	j, err := k.store.LoadJob(ctx, p.Tenant, r.Job)
	if errors.Is(err, port.ErrNotFound) {
		known, _, err := k.runs.Refuse(ctx, p.Tenant, key, fault.New(fault.NotFound, "the job %s does not exist", r.Job))
		return known, err
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("cannot read job %s: %w", r.Job, err)
	}
	engineModel := ""
	if stored, err := k.store.LoadResource(ctx, catalog.Ref(p.Tenant, r.Model)); err == nil {
		if model, err := catalog.Decode(stored); err == nil {
			engineModel = model.EngineModel
		}
		if p.Engine != nil {
			engineModel = p.Engine.ModelName(engineModel)
		}
	} else if !errors.Is(err, port.ErrNotFound) {
		return run.Run{}, fmt.Errorf("cannot read model %s: %w", r.Model, err)
	}
	where, err := k.placementOf(ctx, p.Tenant, r.Job)
	if err != nil {
		return run.Run{}, err
	}
	is := k.config.Host.NewRun(j, k.config.Policy, set.Environment(r, k.hostOf(where), engineModel), nil, spec.Override{})
	is.Exec = is.Exec && (p.Engine != nil && p.Engine.Machines != nil && p.Engine.Machines.Exec || k.config.Host.Owns(p.UpdatedBy))
	if is.Work.Program == nil {
		known, _, err := k.runs.Refuse(ctx, p.Tenant, key, fault.New(fault.Unprocessable, "the job %s has no program, want the program of a server", r.Job))
		return known, err
	}
	is.Trigger, is.Serves, is.CorrelationID = run.TriggerPool, &run.Serves{Pool: p.ID, Replica: r.ID}, "pool:"+p.ID+"/"+r.ID
	is.Policy.Retry.MaxAttempts = 1 // a new run replaces it
	created, _, err := k.runs.Create(ctx, is, r.Key, "")
	return created, err
}

// loopback returns the address of replicas on the host of this process.
func (k *Keeper) loopback() string { return cmp.Or(k.config.Loopback, "127.0.0.1") }

// hostOf returns the address on which a server listens.
func (k *Keeper) hostOf(where platform.Placement) string {
	switch {
	case k.config.Runners.Shares(where):
		return k.loopback()
	case where.Runner == platform.RunnerFly || where.Runner == "":
		return "::" // machines of Fly have private IPv6 addresses
	}
	return "0.0.0.0"
}

// locate stores the URL of the server of a running run. If the runner reports no address, it
// stores the fault PoolUnavailable.
func (k *Keeper) locate(ctx context.Context, p platform.Pool, r fleet.Replica, of run.Run) error {
	host := k.loopback()
	if !k.config.Runners.Shares(of.Attempt.Place()) {
		m, err := k.runner.Inspect(ctx, of.Attempt.Machine)
		if err != nil {
			return fmt.Errorf("cannot read the address of replica %s of pool %s: %w", r.ID, p.ID, err)
		}
		host = m.Address
	}
	url := ""
	if host != "" {
		url = "http://" + net.JoinHostPort(host, strconv.Itoa(r.Port))
	} else if r.Fault != nil && r.Fault.Code == fault.PoolUnavailable {
		return nil // the fault is already stored
	}
	_, err := k.capacity.Replicas.Update(ctx, p.Ref(), r, func(now fleet.Replica) fleet.Replica {
		switch {
		case now.Run != of.ID || now.Phase != fleet.ReplicaStarting:
		case url != "":
			return now.Located(of.Attempt.Number, url, k.now())
		default:
			now.Fault, now.LastRun = fault.New(fault.PoolUnavailable, "the runner %s reports no address of the machine of the replica", of.Attempt.Machine.Runner), ""
		}
		return now
	})
	return err
}

// end requests the cancellation of a replica's run. It is idempotent.
func (k *Keeper) end(ctx context.Context, p platform.Pool, r fleet.Replica) error {
	found, err := k.store.Load(ctx, run.Ref{Tenant: p.Tenant, ID: r.Run})
	if errors.Is(err, port.ErrNotFound) || err == nil && (found.State.Terminal() || found.Cancel != nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read run %s: %w", r.Run, err)
	}
	k.log.LogAttrs(ctx, slog.LevelInfo, "a replica is ended", append(about.Run(&found), slog.String("pool", p.ID), slog.String("replica", r.ID))...)
	request := run.CancelRequested{By: "pool:" + p.ID, Reason: "the pool does not need the replica any more"}
	if _, err := k.runs.Apply(ctx, found, request); err != nil {
		return fmt.Errorf("cannot end run %s: %w", r.Run, err)
	}
	return nil
}
