package answers

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/budgets"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// raw is the store and the streams without faults, for the simulation's own calls.
type raw struct {
	store port.Store
	feed  port.AnswerFeed
}

// begin stores the model, the pool and the limits.
func (w *world) begin(ctx context.Context) (err error) {
	if w.raw.store, w.raw.feed, err = w.home.open(ctx); err != nil {
		return err
	}
	records := runs.NewRecords(w.raw.store, bubble, slog.New(slog.DiscardHandler))
	models := artifacts.NewModels(w.raw.store, bubble, slog.New(slog.DiscardHandler), api.ModelDocument, w.config().ModelKeys)
	w.storeImage(ctx)
	w.objects = w.outputs.Count(port.Accepted)
	fallbacks, err := w.storeSpare(ctx, models)
	if err != nil {
		return err
	}
	d, err := w.storeRoutes(ctx, models, catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: catalog.Workloads(), Price: w.price,
	})
	if err != nil {
		return err
	}
	if _, _, err = models.Create(ctx, identity(""), modelID, d, false); err != nil {
		return fmt.Errorf("cannot store the model: %w", err)
	}
	queue := w.roll("queue").IntN(3) * 4
	if err := w.storePool(ctx, platform.Pool{Tenant: tenant, ID: poolID, Limit: w.place.Limit(), QueueLimit: queue, Engine: &w.place, Fallbacks: fallbacks, CreatedAt: bubble.Now()}); err != nil {
		return fmt.Errorf("cannot store the pool: %w", err)
	}
	leave := runs.LeaveToSweep{}
	life := runs.NewLifecycle(records, runs.NoExecutions{}, leave, leave, leave, w.config())
	accounts := budgets.NewAccounts(w.raw.store, life, bubble, api.Documents().Budget, w.config().Budgets)
	for scope, l := range w.limits {
		if _, err := accounts.PutBudget(ctx, identity(""), scope, l.Limit); err != nil {
			return fmt.Errorf("cannot limit %s: %w", scope, err)
		}
	}
	w.note("plan %+v, faults for %s", w.plan, w.faultsEnd.Sub(w.start))
	w.note("%d hosts; %d replicas with %d slots, a queue of %d; price %d and %d, cached %t", len(w.hosts), len(w.place.Replicas), w.place.Slots, queue,
		w.price.Input, w.price.Output, w.price.Cached != nil)
	return nil
}

// play runs the world until everything has ended, or should have ended.
func (w *world) play() {
	for _, h := range w.hosts {
		w.rest.Go(h.run)
	}
	for _, r := range w.replicas {
		w.rest.Go(r.load)
		w.rest.Go(r.refuse)
	}
	w.rest.Go(w.operate)
	draw := w.roll("clients")
	for i := range 1 + draw.IntN(14) {
		c := w.newClient(fmt.Sprintf("request-%d", i))
		w.clients.Go(c.run)
	}
	ended := make(chan struct{})
	go func() { w.clients.Wait(); close(ended) }()
	last := w.faultsEnd.Add(w.bound)
	for over := false; !over && !w.failed(); {
		w.sleep(time.Second)
		w.settle()
		w.checkState()
		w.checkSlots(context.Background())
		over = isClosed(ended) && !w.faulty() && w.quiet()
		if !over && bubble.Now().After(last) {
			w.fail("still active %s after the last fault: %s", w.bound, w.active())
		}
	}
	w.stop()
	w.rest.Wait()
	w.clients.Wait()
	_ = clock.Sleep(context.Background(), bubble, 2*longestKeep) // until engines have released all closed requests
	w.settle()
	if !w.failed() {
		w.checkEnd(context.Background())
		w.checkDeletion(context.Background())
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// any returns a random host's process; nil if that host has no process now.
func (w *world) any(draw *rand.Rand) *process { return w.hosts[draw.IntN(len(w.hosts))].process() }

// operate drains and resumes the pool, and changes budget limits, until faults end.
func (w *world) operate() {
	draw := w.roll("operator")
	for range draw.IntN(4) {
		if !w.sleep(upTo(draw, 90*time.Second)) || !w.faulty() {
			return
		}
		if draw.IntN(2) == 0 {
			w.call(draw, "limit of a project", func(ctx context.Context, p *process) error {
				_, err := p.system.Budgets.PutBudget(ctx, identity(""), budget.ProjectScope("project-1"), budget.Limit{Tokens: new(int64(draw.IntN(3000)))})
				return err
			})
			continue
		}
		w.call(draw, "drain", func(ctx context.Context, p *process) error {
			_, err := p.system.Pools.Drain(ctx, identity(""), poolID, nil, change.Precondition{})
			return err
		})
		w.sleep(upTo(draw, 30*time.Second))
		w.call(draw, "resume", func(ctx context.Context, p *process) error {
			_, err := p.system.Pools.Resume(ctx, identity(""), poolID, change.Precondition{})
			return err
		})
	}
}

// call makes a call of the operator and retries it until it succeeds.
func (w *world) call(draw *rand.Rand, what string, do func(context.Context, *process) error) {
	for w.ctx.Err() == nil {
		err := w.once(draw, do)
		w.note("%s: %v", what, err)
		if err == nil {
			return
		}
		w.sleep(upTo(draw, 5*time.Second))
	}
}

// once makes one call. It fails if there is no process or if the process is killed during the
// call. The response can be lost.
func (w *world) once(draw *rand.Rand, do func(context.Context, *process) error) error {
	p := w.any(draw)
	if p == nil || p.dead.Load() {
		return errKilled
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	if w.faulty() && chance(draw, w.plan.interrupts) {
		timer := time.AfterFunc(upTo(draw, 20*time.Millisecond), cancel)
		defer timer.Stop()
	}
	err := do(ctx, p)
	if p.dead.Load() || w.faulty() && chance(draw, w.plan.lost) {
		return errKilled
	}
	return err
}
