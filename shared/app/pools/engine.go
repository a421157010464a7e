package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/port"
)

// checkEngine returns the faults of the definition of an engine pool. It must have no settings
// of a runner, and its model must be in the catalog.
func (s *common) checkEngine(ctx context.Context, who port.Identity, id string, d Definition) (found []*fault.Fault, err error) {
	for _, other := range []struct {
		field string
		given bool
	}{{"runner", d.Placement.Runner != ""}, {"warm", d.Warm != nil}} {
		if other.given {
			found = append(found, fault.Invalid(other.field, "a pool of an engine has no machines, want no %s with an engine", other.field))
		}
	}
	unprocessable := func(field, format string, args ...any) {
		f := fault.New(fault.Unprocessable, format, args...)
		f.Field = field
		found = append(found, f)
	}
	if id == s.capacity.Pools.Standard().ID {
		unprocessable("engine", "the pool %s is the default of every job, want another pool for an engine", id)
	}
	e := *d.Engine
	found = append(found, e.Check(platform.EngineOffer{Mock: s.config.MockEngine, CheckURL: s.config.Engines.CheckURL})...)
	if e.Machines != nil && limit.ValidName(e.Machines.Job) {
		wrong, err := s.checkMachines(ctx, who, *e.Machines)
		if err != nil {
			return nil, err
		}
		found = append(found, wrong...)
	}
	if !limit.ValidModel(e.Model) {
		return found, nil
	}
	r, err := s.store.LoadResource(ctx, catalog.Ref(who.Tenant, e.Model))
	if errors.Is(err, port.ErrNotFound) {
		unprocessable("engine.model", "unknown model %q, want a model of GET /v1/catalog/models", e.Model)
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the model of the pool: %w", err)
	}
	model, err := catalog.Decode(r)
	if err == nil && slices.Contains(platform.EngineKinds(), e.Kind) && !slices.Contains(model.Engines, e.Kind) {
		unprocessable("engine.kind", "the engine %s does not serve the model %s, want one of %v", e.Kind, e.Model, model.Engines)
	}
	return found, err
}

// reportedSlots returns the smallest number of slots that a replica of a pool reports; 0 if none does
// within describeTime, or if the pool has a number of its own.
func (s *Pools) reportedSlots(ctx context.Context, p platform.Pool) int {
	if p.Engine == nil || !p.Engine.AutoSlots {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	return s.health.Slots(ctx, p)
}

// withSlots returns the definition with the slots that its engines report; see
// platform.EnginePlace.WithSlots.
func (d Definition) withSlots(reported int, stored *platform.Pool) Definition {
	if d.Engine == nil {
		return d
	}
	var before *platform.EnginePlace
	if stored != nil {
		before = stored.Engine
	}
	place := d.Engine.WithSlots(reported, before)
	if d.Engine = &place; place.AutoSlots {
		d.Limit = place.Limit()
	}
	return d
}

// replaceable returns the fault PoolInUse if a definition replaces the runner, the engine, the model or
// the origin of a pool with runs that have not ended.
func (s *Pools) replaceable(ctx context.Context, p platform.Pool, d Definition) error {
	by := d.Engine
	if (p.Origin == nil) != (d.Origin == nil) || p.Origin != nil && p.Home() != (platform.Pool{Origin: d.Origin}).Home() {
		return s.unused(ctx, p)
	}
	same := p.Engine == nil && by == nil || p.Engine != nil && by != nil && p.Engine.Kind == by.Kind && p.Engine.Model == by.Model
	if same || p.Version == 0 {
		return nil
	}
	return s.unused(ctx, p)
}

// Capability describes the pools of one engine together.
type Capability struct {
	Engine platform.EngineKind
	// ContextTokens is the largest number of tokens of a prompt and its answer together.
	ContextTokens int
	Workloads     []port.Workload
	// Concurrency is the number of tasks that run at the same time.
	Concurrency int
	// Deterministic reports whether a pool generates the same tokens for the same seed.
	Deterministic bool
	// Models are the ids of their active models, Pools the ids of the pools.
	Models, Pools []string
}

// describeTime limits how long a caller waits for engines to report their capabilities.
const describeTime = 2 * time.Second

// Capabilities returns the abilities of the engine pools of the caller's tenant, ordered by
// engine. It ignores draining pools and retired models. A process with a dispatcher first asks
// engines whose capabilities are unknown or were reported long ago.
func (s *Pools) Capabilities(ctx context.Context, who port.Identity) ([]Capability, error) {
	found := map[platform.EngineKind]Capability{}
	asking, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	for page := (port.Page{Limit: poolPage}); ; {
		stored, next, err := s.store.PoolRecords(ctx, who.Tenant, page)
		if err != nil {
			return nil, fmt.Errorf("cannot list the pools: %w", err)
		}
		for _, p := range stored {
			if p, err = s.capacity.Pools.Hosted(ctx, p); err != nil {
				return nil, err
			}
			if p.Engine == nil || p.Draining {
				continue
			}
			s.runs.Describe(asking, p)
			if found[p.Engine.Kind], err = s.with(ctx, found[p.Engine.Kind], p); err != nil {
				return nil, err
			}
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	var list []Capability
	for _, c := range found {
		if len(c.Pools) > 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Capability) int { return cmp.Compare(a.Engine, b.Engine) })
	return list, nil
}

// with adds a pool to the capability of its engine.
func (s *Pools) with(ctx context.Context, c Capability, p platform.Pool) (Capability, error) {
	r, err := s.store.LoadResource(ctx, catalog.Ref(p.Home().Tenant, p.Engine.Model))
	if errors.Is(err, port.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("cannot read the model of pool %s: %w", p.ID, err)
	}
	model, err := catalog.Decode(r)
	if err != nil || model.Admit(false, nil) != nil {
		return c, err
	}
	c.Engine = p.Engine.Kind
	c.ContextTokens = max(c.ContextTokens, model.ContextIn(s.runs.ContextOf(ctx, p)))
	c.Concurrency += p.Limit
	c.Deterministic = c.Deterministic || p.Engine.Deterministic
	for _, w := range model.Workloads {
		if !slices.Contains(c.Workloads, w) {
			c.Workloads = append(c.Workloads, w)
		}
	}
	slices.Sort(c.Workloads)
	if !slices.Contains(c.Models, model.ID) {
		c.Models = append(c.Models, model.ID)
	}
	c.Pools = append(c.Pools, p.ID)
	return c, nil
}
