package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// pool is a pool as defined by its operator.
type pool struct {
	id         string
	definition pools.Definition
	// further are the pools to which it may fall back. They are chosen so that there is no
	// cycle.
	further []string
	// ever are all fallbacks that the pool has ever had.
	ever []platform.Fallback
	// drainedAt is when a drain was acknowledged; zero once its end is requested.
	drainedAt time.Time
	// settings are the settings of its warm machines.
	settings []warmSetting
}

// drawPools draws the pools of a mixed world: the default one on Fly, and others.
func (w *world) drawPools() {
	w.pools = []*pool{{id: w.Config.Pool, definition: pools.Definition{Limit: w.Config.MaxMachines, QueueLimit: new(0)}}}
	if !w.Mixed() {
		return
	}
	w.Ways = w.DrawWays()
	w.Requests = 2 + w.Random.IntN(8)
	w.Config.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly, platform.RunnerKubernetes, platform.RunnerContainer}}
	for i := range 2 + w.Random.IntN(3) {
		p := &pool{id: fmt.Sprintf("pool-%d", i+1), definition: pools.Definition{QueueLimit: new(0)}}
		if w.Chance(0.5) {
			p.definition.Limit = 1 + w.Random.IntN(4)
		}
		w.pools = append(w.pools, p)
	}
	for i, p := range w.pools {
		p.definition.Placement = platform.Placement{Runner: w.Config.Runners.Runners[w.Random.IntN(3)]}
		for _, other := range w.pools[i+1:] {
			p.further = append(p.further, other.id)
		}
		w.drawFallbacks(p)
	}
}

// drawFallbacks draws new fallbacks for a pool.
func (w *world) drawFallbacks(p *pool) {
	p.definition.Fallbacks = nil
	for _, to := range p.further {
		f := platform.Fallback{Pool: to}
		for _, reason := range platform.FallbackReasons() {
			if w.Chance(0.6) {
				f.On = append(f.On, reason)
				if reason == platform.FallbackThrottled {
					f.ThrottledFor = w.Between(time.Second, max(w.Longest/8, 2*time.Second))
				}
			}
		}
		if len(f.On) > 0 {
			p.definition.Fallbacks = append(p.definition.Fallbacks, f)
		}
	}
	p.ever = append(p.ever, p.definition.Fallbacks...)
}

// definePools creates the pools of a mixed world, those without fallbacks first.
func (w *world) definePools(ctx context.Context) error {
	for i := len(w.pools) - 1; i >= 0 && w.SeveralPools(); i-- {
		var err error = harness.ErrUnreachable
		for tries := 0; err != nil && tries < 100; tries++ {
			err = w.putPool(ctx, w.pools[i])
		}
		if err != nil {
			return fmt.Errorf("pool %s: %w", w.pools[i].id, err)
		}
		for n := range w.pools[i].settings {
			w.pools[i].settings[n].doneAt = w.Time.Now
		}
	}
	return nil
}

func (w *world) putPool(ctx context.Context, p *pool) error {
	_, _, err := w.System.Pools.Put(ctx, harness.Client, p.id, p.definition, change.Precondition{})
	return err
}

// poolOf returns the pool of the world with the id, or nil.
func (w *world) poolOf(id string) *pool {
	for _, p := range w.pools {
		if p.id == id {
			return p
		}
	}
	return nil
}

// operateMixed changes and drains the pools.
func (w *world) operateMixed() {
	defer w.warmOperated()
	for range w.Random.IntN(6) {
		w.Time.Sleep(w.UpTo(w.Longest / 2))
		p := w.pools[w.Random.IntN(len(w.pools))]
		switch {
		case w.Warmed() && p.keepsWarm() && w.Chance(0.5):
			w.changeWarm(p, w.drawSetting())
		case w.Chance(0.6):
			w.drawFallbacks(p)
			w.jobCall(fmt.Sprintf("fallbacks of %s: %+v", p.id, p.definition.Fallbacks), func(ctx context.Context) error { return w.putPool(ctx, p) })
		case p.id != w.Config.Pool:
			w.jobCall("drain of "+p.id, func(ctx context.Context) error {
				_, err := w.System.Pools.Drain(ctx, harness.Client, p.id, nil, change.Precondition{})
				return err
			})
			p.drainedAt = w.Time.Now
			w.Time.Sleep(w.UpTo(w.Longest / 4))
			p.drainedAt = time.Time{}
			w.jobCall("resume of "+p.id, func(ctx context.Context) error {
				_, err := w.System.Pools.Resume(ctx, harness.Client, p.id, change.Precondition{})
				return err
			})
		}
	}
}
