package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Pools serves operators who read and change pools.
type Pools struct {
	*Drains
	document func(p platform.Pool) ([]byte, error)
	health   EngineHealths
	record   series.Recorder
}

// New returns Pools. drains ends the runs of drained pools. document encodes a pool for its
// events, as clients see it. health has the state of the engines. record gets the samples of
// drains.
func New(drains *Drains, document func(p platform.Pool) ([]byte, error), health EngineHealths, record series.Recorder) *Pools {
	return &Pools{Drains: drains, document: document, health: health, record: record}
}

// Definition has the settings of a pool that an operator sets.
type Definition struct {
	Limit int
	// QueueLimit is nil for the limit of the deployment.
	QueueLimit *int
	Placement  platform.Placement
	Fallbacks  []platform.Fallback
	// Warm is nil for a pool without warm machines.
	Warm *platform.Warm
	// Engine is nil for a pool of a runner. Limit applies to an engine pool too.
	Engine *platform.EnginePlace
	// Sharing offers the pool to other tenants; nil without an offer. Origin is the offered pool of
	// another tenant that the pool uses, in place of an engine.
	Sharing *platform.Sharing
	Origin  *platform.Origin
	// Faults are the faults of the request that the other fields cannot represent, each with
	// its field.
	Faults []*fault.Fault
}

// View is a pool with the use of its slots and its queue.
type View struct {
	platform.Pool
	// Held is the number of runs with a slot, Queued the number of queued runs. A pool without
	// a limit has no slots.
	Held, Queued int
	// Hosted is the engine of the owner's pool; nil for a pool with slots of its own.
	Hosted *platform.EnginePlace
}

// Tag is the entity tag of a version of a pool, with its quotes. A pool that was
// deleted and created again has other tags.
func Tag(p platform.Pool) string {
	if p.Version == 0 {
		return `"0"`
	}
	return fmt.Sprintf(`"%d-%x"`, p.Version, p.CreatedAt.UnixNano())
}

func noPool() error { return fault.New(fault.NotFound, "no such pool") }

// Put creates a pool or changes its definition, and starts queued runs within the new limits. A
// new placement applies to machines that are created from then on. created is false for the
// default pool, which always exists. Faults: InvalidRequest with the field, job.DefinitionProblems
// with all problems of the definition, PreconditionFailed.
func (s *Pools) Put(ctx context.Context, who port.Identity, id string, d Definition, required change.Precondition) (v View, created bool, err error) {
	if !limit.ValidName(id) {
		return v, false, fault.Invalid("pool_id", "malformed id %q, want 1 to 63 lower-case letters, digits and hyphens, the first no hyphen", limit.Cut(id, limit.FileName))
	}
	queueLimit := s.capacity.Pools.Standard().QueueLimit
	if d.QueueLimit != nil {
		queueLimit = *d.QueueLimit
	}
	wrong, err := s.check(ctx, who, id, d, queueLimit)
	if err != nil {
		return v, false, err
	}
	if len(wrong) > 0 {
		return v, false, job.ProblemsOf(wrong)
	}
	if d.Engine != nil && d.Engine.Machines != nil {
		d.Engine.Machines.Exec = who.May(access.Exec)
	}
	reported := s.reportedSlots(ctx, platform.Pool{Tenant: who.Tenant, ID: id, Engine: d.Engine})
	p, created, err := s.change(ctx, who, id, required, func(stored *platform.Pool) (platform.Pool, error) {
		p, d := platform.Pool{Tenant: who.Tenant, ID: id}, d.withSlots(reported, stored)
		if stored != nil {
			p = *stored
			if err := s.replaceable(ctx, p, d); err != nil {
				return platform.Pool{}, err
			}
		}
		return p.Resized(d.Limit, queueLimit, who.Subject, s.now()).Placed(d.Placement, who.Subject, s.now()).
			FallingBack(d.Fallbacks, who.Subject, s.now()).Warmed(d.Warm, who.Subject, s.now()).
			Serving(d.Engine, who.Subject, s.now()).Shared(d.Sharing, d.Origin, who.Subject, s.now()), nil
	})
	if err != nil {
		return v, false, err
	}
	if err := s.keepMachines(ctx, p); err != nil {
		return v, false, err
	}
	s.fillPool(ctx, p)
	v, err = s.view(ctx, p)
	return v, created, err
}

// check returns the faults of the definition of a pool.
func (s *common) check(ctx context.Context, who port.Identity, id string, d Definition, queueLimit int) ([]*fault.Fault, error) {
	found, err := s.checkSharing(ctx, who, id, d)
	if err != nil {
		return nil, err
	}
	found = append(slices.Clone(d.Faults), found...)
	if d.Origin != nil {
		return found, nil
	}
	if d.Limit < 0 || d.Limit > limit.PoolSlots {
		found = append(found, fault.Invalid("limit", "limit: %d is out of range, want 0 (no limit) to %d", d.Limit, limit.PoolSlots))
	}
	if queueLimit < 0 || queueLimit > limit.PoolQueue {
		found = append(found, fault.Invalid("queueLimit", "queueLimit: %d is out of range, want 0 (no limit) to %d", queueLimit, limit.PoolQueue))
	}
	if d.Engine != nil {
		engine, err := s.checkEngine(ctx, who, id, d)
		if err != nil {
			return nil, err
		}
		fallbacks, err := s.checkFallbacks(ctx, who.Tenant, id, d)
		return slices.Concat(found, engine, fallbacks), err
	}
	where := d.Placement.Check(s.config.Runners)
	if k := platform.SettingsOf[platform.KubernetesSettings](d.Placement); len(where) == 0 && k != nil && k.PodDefaults != nil && s.config.CheckPodDefaults != nil {
		where = s.config.CheckPodDefaults(k.PodDefaults)
	}
	if d.Warm != nil {
		where = append(where, d.Warm.Check(cmp.Or(d.Placement.Runner, s.config.Runners.Default()))...)
		if f := fault.Of(s.config.Host.Check(who, spec.Work{Image: d.Warm.Image})); f != nil {
			f.Field = "warm.image"
			where = append(where, f)
		}
	}
	fallbacks, err := s.checkFallbacks(ctx, who.Tenant, id, d)
	return slices.Concat(found, where, fallbacks), err
}

// Drain stops the admission of runs: queued runs stay in the queue, and new runs join it. Runs
// with a slot keep it until the deadline, a number of seconds from now. Then their workers are
// asked to end, and the runs are queued for another attempt; runs of kind inference are
// cancelled. nil means no deadline; another Drain replaces the deadline. Faults: NotFound,
// InvalidRequest with the field, PreconditionFailed.
func (s *Pools) Drain(ctx context.Context, who port.Identity, id string, seconds *int, required change.Precondition) (View, error) {
	var by time.Time
	if seconds != nil {
		if *seconds < 0 || *seconds > int(limit.Duration/time.Second) {
			return View{}, fault.Invalid("deadlineSeconds", "deadlineSeconds: %d is out of range, want 0 to %d", *seconds, limit.Duration/time.Second)
		}
		by = s.now().Add(time.Duration(*seconds) * time.Second)
	}
	drained := true
	p, err := s.existing(ctx, who, id, required, func(stored platform.Pool) platform.Pool {
		drained = stored.Draining
		return stored.Drain(by, who.Subject, s.now())
	})
	if err != nil {
		return View{}, err
	}
	if !drained {
		s.record(ctx, series.DrainOf(id))
	}
	if due := p.DrainDue(); !due.IsZero() && !due.After(s.now()) {
		if err := s.runs.InBudget(ctx, func(ctx context.Context) error { return s.EndDrained(ctx, p.Ref()) }); err != nil {
			s.log.WarnContext(ctx, "cannot end the runs of a drained pool; a sweep does", "pool", id, "error", err.Error())
		}
	}
	return s.view(ctx, p)
}

// Resume restarts the admission, and starts queued runs. It is idempotent. Faults:
// NotFound, PreconditionFailed.
func (s *Pools) Resume(ctx context.Context, who port.Identity, id string, required change.Precondition) (View, error) {
	p, err := s.existing(ctx, who, id, required, func(stored platform.Pool) platform.Pool { return stored.Resume(who.Subject, s.now()) })
	if err != nil {
		return View{}, err
	}
	s.fillPool(ctx, p)
	return s.view(ctx, p)
}

// stored reads a pool of the caller's tenant. Fault: NotFound.
func (s *Pools) stored(ctx context.Context, who port.Identity, id string) (platform.Pool, error) {
	p, err := s.capacity.Pools.Read(ctx, platform.PoolRef{Tenant: who.Tenant, ID: id})
	if errors.Is(err, port.ErrNotFound) {
		return platform.Pool{}, noPool()
	}
	return p, err
}

// existing is change for a pool that exists.
func (s *Pools) existing(ctx context.Context, who port.Identity, id string, required change.Precondition, decide func(platform.Pool) platform.Pool) (platform.Pool, error) {
	p, _, err := s.change(ctx, who, id, required, func(stored *platform.Pool) (platform.Pool, error) {
		if stored == nil {
			return platform.Pool{}, noPool()
		}
		return decide(*stored), nil
	})
	return p, err
}

// change applies decide to the stored pool, nil if it does not exist, and saves the result. It
// repeats both after a conflict.
func (s *Pools) change(
	ctx context.Context, who port.Identity, id string, required change.Precondition, decide func(stored *platform.Pool) (platform.Pool, error),
) (p platform.Pool, created bool, err error) {
	ref := platform.PoolRef{Tenant: who.Tenant, ID: id}
	for range port.CommitTries {
		stored, err := s.capacity.Pools.Read(ctx, ref)
		is, tag := &stored, Tag(stored)
		if errors.Is(err, port.ErrNotFound) {
			is, tag = nil, ""
		} else if err != nil {
			return platform.Pool{}, false, err
		}
		if err := required.Check("pool", tag); err != nil {
			return platform.Pool{}, false, err
		}
		if p, err = decide(is); err != nil {
			return platform.Pool{}, false, err
		}
		if is != nil && reflect.DeepEqual(p, stored) {
			return p, false, nil
		}
		note, err := s.note(ctx, who, is, &p)
		if err != nil {
			return platform.Pool{}, false, err
		}
		err = s.store.SavePool(ctx, p, note)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		s.capacity.Pools.Forget(ref) // also if the change may have been applied
		if err != nil {
			return platform.Pool{}, false, fmt.Errorf("cannot store the pool: %w", err)
		}
		p.Version++
		s.log.InfoContext(ctx, "pool changed", "pool", id, "version", p.Version, "limit", p.Limit, "queue_limit", p.QueueLimit,
			"draining", p.Draining, "by", who.Subject)
		return p, is == nil, nil
	}
	return platform.Pool{}, false, capacity.TooManyChanges()
}

// fillPool grants the free slots of a pool to queued runs, unless it is draining.
func (s *Pools) fillPool(ctx context.Context, p platform.Pool) {
	if !p.Draining {
		s.runs.FillAll(ctx, p.Tenant, p.ID)
	}
	for _, other := range s.capacity.Pools.Sharing(p.Ref()) {
		s.runs.FillAll(ctx, other.Tenant, other.ID)
	}
}

// Delete removes a pool. Faults: NotFound, PreconditionFailed, PoolInUse for the default
// pool and for one with runs that have not ended.
func (s *Pools) Delete(ctx context.Context, who port.Identity, id string, required change.Precondition) error {
	for range port.CommitTries {
		p, err := s.stored(ctx, who, id)
		if err == nil {
			err = required.Check("pool", Tag(p))
		}
		if err != nil {
			return err
		}
		if id == s.capacity.Pools.Standard().ID {
			return fault.New(fault.PoolInUse, "the pool %s is the default of every run; it cannot be deleted", id)
		}
		if p.Sharing != nil {
			return fault.New(fault.PoolInUse, "the pool %s is offered to %d tenants; withdraw the offers first", id, len(p.Sharing.Offers))
		}
		if err := s.unused(ctx, p); err != nil {
			return err
		}
		note, err := s.note(ctx, who, &p, nil)
		if err != nil {
			return err
		}
		err = s.store.DeletePool(ctx, p, note)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		s.capacity.Pools.Forget(p.Ref())
		if err != nil {
			return fmt.Errorf("cannot delete the pool: %w", err)
		}
		s.forgetWarm(ctx, p.Ref())
		s.runs.KeepReplicas(ctx, p.Ref())
		s.capacity.Failures.Forget(ctx, p.Ref())
		s.log.InfoContext(ctx, "pool deleted", "pool", id, "version", p.Version, "by", who.Subject)
		return nil
	}
	return capacity.TooManyChanges()
}

// forgetWarm deletes the warm machine records of a deleted pool. No run uses these machines;
// the sweep destroys machines without a record.
func (s *common) forgetWarm(ctx context.Context, ref platform.PoolRef) {
	have, err := s.store.WarmMachines(ctx, ref)
	for _, w := range have {
		if lost := s.store.DeleteWarm(ctx, w); lost != nil && !errors.Is(lost, port.ErrConflict) {
			err = errors.Join(err, lost)
		}
	}
	if err != nil {
		s.log.WarnContext(ctx, "cannot delete the records of warm machines; a sweep ends the machines", "pool", ref.ID, "error", err.Error())
	}
}

// unused returns a fault if a run of the pool has not ended. A run that is created
// meanwhile waits until the pool exists again, at most its queue timeout.
func (s *common) unused(ctx context.Context, p platform.Pool) error {
	if err := s.unusedByGuests(ctx, p); err != nil {
		return err
	}
	return s.eachUnfinished(ctx, p.Tenant, run.States(), func(r run.Run) error {
		if r.Slot.Pool != p.ID {
			return nil
		}
		return fault.New(fault.PoolInUse, "run %s of the pool is %s; want a pool without runs that have not ended", r.ID, r.State)
	})
}

// note returns the event of a change of a pool. before is nil for a new pool, after for a
// deleted one.
func (s *Pools) note(ctx context.Context, who port.Identity, before, after *platform.Pool) (note port.Note, err error) {
	of := after
	if after == nil {
		of = before
	}
	c := change.Resource{
		Tenant: of.Tenant, Kind: "pool", ID: of.ID, Version: of.Version + 1, Revision: of.Version + 1, Created: of.CreatedAt,
	}
	if before != nil {
		c.Before, err = s.document(*before)
	}
	if err == nil && after != nil {
		stored := *after
		stored.Version++
		c.After, err = s.document(stored)
	}
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode pool %s: %w", of.ID, err)
	}
	return c.Note(ctx, who.Actor(), s.now())
}
