package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/machines"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// spare is a pool that no job names, so that it can be deleted.
const spare = "spare"

// spread is the time over which clients submit their requests. With warm machines it is long
// enough for some to become ready.
func (w *world) spread() time.Duration {
	if w.Warmed() {
		return max(w.Longest/2, 5*time.Minute)
	}
	return time.Minute
}

// warmSetting is a setting of a pool's warm machines, as seen by its operator.
type warmSetting struct {
	// warm is nil if the pool has no warm machines, and while it drains.
	warm *platform.Warm
	// doneAt is when the change was acknowledged; zero until then.
	doneAt time.Time
}

// drawWarm draws the pools with warm machines.
func (w *world) drawWarm() {
	some := func(most float64) float64 {
		if w.Random.IntN(2) == 0 {
			return 0
		}
		return w.Random.Float64() * most
	}
	w.Requests = 4 + w.Random.IntN(10)
	w.warm = &warmth{}
	w.WarmWays = machines.WarmWays{StuckCreated: some(0.3), NoRoom: some(0.3), Late: some(0.3), Slow: some(0.2)}
	if !w.Mixed() {
		w.Config.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly}}
		if w.Chance(0.5) {
			w.pools = append(w.pools, &pool{id: "pool-1", definition: pools.Definition{Limit: w.Random.IntN(4), QueueLimit: new(0)}})
		}
	}
	w.pools = append(w.pools, &pool{id: spare, definition: pools.Definition{Placement: platform.Placement{Runner: platform.RunnerFly}, QueueLimit: new(0)}})
	for _, p := range w.pools {
		if p.keepsWarm() && (p.id == w.Config.Pool || w.Chance(0.8)) {
			p.definition.Warm = w.drawSetting()
			p.settings = []warmSetting{{warm: p.definition.Warm}}
		}
	}
}

// keepsWarm reports whether the pool may have warm machines.
func (p *pool) keepsWarm() bool {
	return p.definition.Placement.Runner == "" || p.definition.Placement.Runner == platform.RunnerFly
}

// drawSetting draws the setting of warm machines.
func (w *world) drawSetting() *platform.Warm {
	s := &platform.Warm{Max: 1 + w.Random.IntN(5)}
	if w.Chance(0.6) {
		s.After, s.Max = platform.WarmRecycle, 1+w.Random.IntN(2) // few machines, so that they are claimed again
	}
	s.Min = s.Max - w.Random.IntN(s.Max+1)*w.Random.IntN(2)
	if w.Chance(0.7) {
		s.Ahead = w.Between(time.Second, w.Longest)
	}
	if w.Chance(0.5) && (s.After == "" || w.Chance(0.3)) {
		s.MaxAge = w.Between(10*time.Second, w.Longest)
	}
	if w.Chance(0.2) {
		s.MemoryMB = 512
	}
	return s
}

// setWarm records that the operator changes the setting of a pool. The returned function
// records the acknowledgement.
func (p *pool) setWarm(s *platform.Warm) (done func(at time.Time)) {
	p.settings = append(p.settings, warmSetting{warm: s})
	last := len(p.settings) - 1
	return func(at time.Time) { p.settings[last].doneAt = at }
}

// warmOff returns when a change that turned off a pool's warm machines was acknowledged; zero
// if they are on.
func (p *pool) warmOff() time.Time {
	if len(p.settings) == 0 {
		return harness.Start
	}
	if last := p.settings[len(p.settings)-1]; last.warm == nil {
		return last.doneAt
	}
	return time.Time{}
}

// warmLimits returns the largest maximum and the highest age in the settings that a sweep may
// use if it began at since. A sweep may use a setting from before a change.
func (p *pool) warmLimits(since time.Time) (most int, age time.Duration) {
	for _, s := range slices.Backward(p.settings) {
		if s.warm != nil {
			most, age = max(most, s.warm.Max), max(age, s.warm.MaxAge)
			if s.warm.MaxAge == 0 {
				age = platform.DefaultWarmAge
			}
		}
		if !s.doneAt.IsZero() && s.doneAt.Before(since) {
			break
		}
	}
	return most, age
}

// operateWarm changes the settings of warm machines, and drains and deletes pools.
func (w *world) operateWarm() {
	for range w.Random.IntN(6) {
		w.Time.Sleep(w.UpTo(w.Longest / 2))
		p := w.pools[w.Random.IntN(len(w.pools))]
		switch {
		case !p.keepsWarm():
		case p.id == spare && w.Chance(0.5):
			w.deletePool(p)
			w.Time.Sleep(w.UpTo(w.Longest / 4))
			w.changeWarm(p, w.drawSetting())
		case w.Chance(0.25):
			w.changeWarm(p, nil)
		case p.id == w.Config.Pool && w.Chance(0.3) && !w.Mixed():
			done := p.setWarm(nil)
			w.drain()
			done(w.Time.Now)
			w.Time.Sleep(w.UpTo(w.Longest / 4))
			done = p.setWarm(p.definition.Warm)
			w.undrain()
			done(w.Time.Now)
		default:
			w.changeWarm(p, w.drawSetting())
		}
	}
	w.warmOperated()
}

// warmOperated records that the operator makes no more changes.
func (w *world) warmOperated() {
	if w.warm != nil {
		w.warm.operated = true
	}
}

// changeWarm changes the setting of a pool; nil ends its warm machines.
func (w *world) changeWarm(p *pool, s *platform.Warm) {
	p.definition.Warm = s
	done := p.setWarm(s)
	w.jobCall(fmt.Sprintf("warm machines of %s: %+v", p.id, s), func(ctx context.Context) error { return w.putPool(ctx, p) })
	done(w.Time.Now)
}

// deletePool deletes a pool. The deletion is refused while a run of the pool has not ended.
func (w *world) deletePool(p *pool) {
	done := p.setWarm(nil)
	for {
		err := w.ClientCall(func(ctx context.Context) error {
			return w.System.Pools.Delete(ctx, harness.Client, p.id, change.Precondition{})
		})
		w.Note("deletion of %s: %v", p.id, err)
		f, known := errors.AsType[*fault.Fault](err)
		if err == nil || known && f.Code == fault.NotFound {
			done(w.Time.Now)
			return
		}
		if known && f.Code == fault.PoolInUse {
			p.settings = slices.Delete(p.settings, len(p.settings)-1, len(p.settings))
			return
		}
		w.Time.Sleep(w.UpTo(5 * time.Second))
	}
}

// closeWarm ends the warm machines of all pools after the last run.
func (w *world) closeWarm() {
	for _, p := range w.pools {
		if !p.keepsWarm() || !p.warmOff().IsZero() {
			continue
		}
		if p.id == spare {
			w.deletePool(p)
		} else {
			w.changeWarm(p, nil)
		}
	}
	w.warm.closed = true
}

// warmQuiet reports whether no machine is left. After the last run it ends the warm machines.
func (w *world) warmQuiet() bool {
	if w.warm == nil {
		return len(w.Machines.Live) == 0
	}
	if len(w.Machines.Kept) > 0 {
		w.endWarm()
		return false
	}
	w.endWarm()
	return w.warm.closed && len(w.Machines.Live) == 0 && w.warmLeft() == ""
}

// endWarm ends the warm machines if the operator makes no more changes.
func (w *world) endWarm() {
	if w.warm != nil && !w.warm.closing && w.warm.operated {
		w.warm.closing = true
		w.Time.After(0, w.closeWarm)
	}
}

// drawWarmJob draws the size of a job's machine. It moves the job away from the spare pool,
// which may be deleted.
func (w *world) drawWarmJob(d map[string]any) {
	if d["pool"] == spare {
		d["pool"] = w.Config.Pool
	}
	if w.Chance(0.3) {
		d["resources"] = map[string]any{"memoryMB": 512}
	}
}
