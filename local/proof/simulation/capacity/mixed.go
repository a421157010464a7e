package capacity

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
	Id         string
	Definition pools.Definition
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

// DrawPools draws the pools of a mixed world: the default one on Fly, and others.
func (w *Capacity) DrawPools() {
	w.Pools = []*pool{{Id: w.Config.Pool, Definition: pools.Definition{Limit: w.Config.MaxMachines, QueueLimit: new(0)}}}
	if !w.Mixed() {
		return
	}
	w.Ways = w.DrawWays()
	w.Requests = 2 + w.Random.IntN(8)
	w.Config.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly, platform.RunnerKubernetes, platform.RunnerContainer}}
	for i := range 2 + w.Random.IntN(3) {
		p := &pool{Id: fmt.Sprintf("pool-%d", i+1), Definition: pools.Definition{QueueLimit: new(0)}}
		if w.Chance(0.5) {
			p.Definition.Limit = 1 + w.Random.IntN(4)
		}
		w.Pools = append(w.Pools, p)
	}
	for i, p := range w.Pools {
		p.Definition.Placement = platform.Placement{Runner: w.Config.Runners.Runners[w.Random.IntN(3)]}
		for _, other := range w.Pools[i+1:] {
			p.further = append(p.further, other.Id)
		}
		w.drawFallbacks(p)
	}
}

// drawFallbacks draws new fallbacks for a pool.
func (w *Capacity) drawFallbacks(p *pool) {
	p.Definition.Fallbacks = nil
	for _, to := range p.further {
		f := platform.Fallback{Pool: to}
		for _, reason := range platform.FallbackReasons(false) {
			if w.Chance(0.6) {
				f.On = append(f.On, reason)
				if reason == platform.FallbackThrottled {
					f.ThrottledFor = w.Between(time.Second, max(w.Longest/8, 2*time.Second))
				}
			}
		}
		if len(f.On) > 0 {
			p.Definition.Fallbacks = append(p.Definition.Fallbacks, f)
		}
	}
	p.ever = append(p.ever, p.Definition.Fallbacks...)
}

// DefinePools creates the pools of a mixed world, those without fallbacks first.
func (w *Capacity) DefinePools(ctx context.Context) error {
	for i := len(w.Pools) - 1; i >= 0 && w.SeveralPools(); i-- {
		var err error = harness.ErrUnreachable
		for tries := 0; err != nil && tries < 100; tries++ {
			err = w.putPool(ctx, w.Pools[i])
		}
		if err != nil {
			return fmt.Errorf("pool %s: %w", w.Pools[i].Id, err)
		}
		for n := range w.Pools[i].settings {
			w.Pools[i].settings[n].DoneAt = w.Time.Now
		}
	}
	return nil
}

func (w *Capacity) putPool(ctx context.Context, p *pool) error {
	_, _, err := w.System.Pools.Put(ctx, harness.Client, p.Id, p.Definition, change.Precondition{})
	return err
}

// poolOf returns the pool of the world with the id, or nil.
func (w *Capacity) poolOf(id string) *pool {
	for _, p := range w.Pools {
		if p.Id == id {
			return p
		}
	}
	return nil
}

// OperateMixed changes and drains the pools.
func (w *Capacity) OperateMixed() {
	defer w.warmOperated()
	for range w.Random.IntN(6) {
		w.Time.Sleep(w.UpTo(w.Longest / 2))
		p := w.Pools[w.Random.IntN(len(w.Pools))]
		switch {
		case w.Warmed() && p.keepsWarm() && w.Chance(0.5):
			w.changeWarm(p, w.drawSetting())
		case w.Chance(0.6):
			w.drawFallbacks(p)
			w.Persist(fmt.Sprintf("fallbacks of %s: %+v", p.Id, p.Definition.Fallbacks), func(ctx context.Context) error { return w.putPool(ctx, p) })
		case p.Id != w.Config.Pool:
			w.Persist("drain of "+p.Id, func(ctx context.Context) error {
				_, err := w.System.Pools.Drain(ctx, harness.Client, p.Id, nil, change.Precondition{})
				return err
			})
			p.drainedAt = w.Time.Now
			w.Time.Sleep(w.UpTo(w.Longest / 4))
			p.drainedAt = time.Time{}
			w.Persist("resume of "+p.Id, func(ctx context.Context) error {
				_, err := w.System.Pools.Resume(ctx, harness.Client, p.Id, change.Precondition{})
				return err
			})
		}
	}
}
