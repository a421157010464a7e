package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// spare is a pool that no job names, so that it can be deleted.
const spare = "spare"

// Spread is the time over which clients submit their requests. With warm machines it is long
// enough for some to become ready.
func (w *Capacity) Spread() time.Duration {
	if w.Warmed() {
		return max(w.Longest/2, 5*time.Minute)
	}
	return time.Minute
}

// warmSetting is a setting of a pool's warm machines, as seen by its operator.
type warmSetting struct {
	// Warm is nil if the pool has no warm machines, and while it drains.
	Warm *platform.Warm
	// DoneAt is when the change was acknowledged; zero until then.
	DoneAt time.Time
}

// DrawWarm draws the pools with warm machines.
func (w *Capacity) DrawWarm() {
	some := func(most float64) float64 {
		if w.Random.IntN(2) == 0 {
			return 0
		}
		return w.Random.Float64() * most
	}
	w.Requests = 4 + w.Random.IntN(10)
	w.Warm = &warmth{}
	w.WarmWays = machines.WarmWays{StuckCreated: some(0.3), NoRoom: some(0.3), Late: some(0.3), Slow: some(0.2)}
	if !w.Mixed() {
		w.Config.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly}}
		if w.Chance(0.5) {
			w.Pools = append(w.Pools, &pool{Id: "pool-1", Definition: pools.Definition{Limit: w.Random.IntN(4), QueueLimit: new(0)}})
		}
	}
	w.Pools = append(w.Pools, &pool{Id: spare, Definition: pools.Definition{Placement: platform.Placement{Runner: platform.RunnerFly}, QueueLimit: new(0)}})
	for _, p := range w.Pools {
		if p.keepsWarm() && (p.Id == w.Config.Pool || w.Chance(0.8)) {
			p.Definition.Warm = w.drawSetting()
			p.settings = []warmSetting{{Warm: p.Definition.Warm}}
		}
	}
}

// keepsWarm reports whether the pool may have warm machines.
func (p *pool) keepsWarm() bool {
	return p.Definition.Placement.Runner == "" || p.Definition.Placement.Runner == platform.RunnerFly
}

// drawSetting draws the setting of warm machines.
func (w *Capacity) drawSetting() *platform.Warm {
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
	p.settings = append(p.settings, warmSetting{Warm: s})
	last := len(p.settings) - 1
	return func(at time.Time) { p.settings[last].DoneAt = at }
}

// warmOff returns when a change that turned off a pool's warm machines was acknowledged; zero
// if they are on.
func (p *pool) warmOff() time.Time {
	if len(p.settings) == 0 {
		return harness.Start
	}
	if last := p.settings[len(p.settings)-1]; last.Warm == nil {
		return last.DoneAt
	}
	return time.Time{}
}

// warmLimits returns the largest maximum and the highest age in the settings that a sweep may
// use if it began at since. A sweep may use a setting from before a change.
func (p *pool) warmLimits(since time.Time) (most int, age time.Duration) {
	for _, s := range slices.Backward(p.settings) {
		if s.Warm != nil {
			most, age = max(most, s.Warm.Max), max(age, s.Warm.MaxAge)
			if s.Warm.MaxAge == 0 {
				age = platform.DefaultWarmAge
			}
		}
		if !s.DoneAt.IsZero() && s.DoneAt.Before(since) {
			break
		}
	}
	return most, age
}

// OperateWarm changes the settings of warm machines, and drains and deletes pools.
func (w *Capacity) OperateWarm() {
	for range w.Random.IntN(6) {
		w.Time.Sleep(w.UpTo(w.Longest / 2))
		p := w.Pools[w.Random.IntN(len(w.Pools))]
		switch {
		case !p.keepsWarm():
		case p.Id == spare && w.Chance(0.5):
			w.deletePool(p)
			w.Time.Sleep(w.UpTo(w.Longest / 4))
			w.changeWarm(p, w.drawSetting())
		case w.Chance(0.25):
			w.changeWarm(p, nil)
		case p.Id == w.Config.Pool && w.Chance(0.3) && !w.Mixed():
			done := p.setWarm(nil)
			w.Drain()
			done(w.Time.Now)
			w.Time.Sleep(w.UpTo(w.Longest / 4))
			done = p.setWarm(p.Definition.Warm)
			w.Undrain()
			done(w.Time.Now)
		default:
			w.changeWarm(p, w.drawSetting())
		}
	}
	w.warmOperated()
}

// warmOperated records that the operator makes no more changes.
func (w *Capacity) warmOperated() {
	if w.Warm != nil {
		w.Warm.operated = true
	}
}

// changeWarm changes the setting of a pool; nil ends its warm machines.
func (w *Capacity) changeWarm(p *pool, s *platform.Warm) {
	p.Definition.Warm = s
	done := p.setWarm(s)
	w.Persist(fmt.Sprintf("warm machines of %s: %+v", p.Id, s), func(ctx context.Context) error { return w.putPool(ctx, p) })
	done(w.Time.Now)
}

// deletePool deletes a pool. The deletion is refused while a run of the pool has not ended.
func (w *Capacity) deletePool(p *pool) {
	done := p.setWarm(nil)
	for {
		err := w.ClientCall(func(ctx context.Context) error {
			return w.System.Pools.Delete(ctx, harness.Client, p.Id, change.Precondition{})
		})
		w.Note("deletion of %s: %v", p.Id, err)
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
func (w *Capacity) closeWarm() {
	for _, p := range w.Pools {
		if !p.keepsWarm() || !p.warmOff().IsZero() {
			continue
		}
		if p.Id == spare {
			w.deletePool(p)
		} else {
			w.changeWarm(p, nil)
		}
	}
	w.Warm.closed = true
}

// WarmQuiet reports whether no machine is left. After the last run it ends the warm machines.
func (w *Capacity) WarmQuiet() bool {
	if w.Warm == nil {
		return len(w.Machines.Live) == 0
	}
	if len(w.Machines.Kept) > 0 {
		w.EndWarm()
		return false
	}
	w.EndWarm()
	return w.Warm.closed && len(w.Machines.Live) == 0 && w.WarmLeft() == ""
}

// EndWarm ends the warm machines if the operator makes no more changes.
func (w *Capacity) EndWarm() {
	if w.Warm != nil && !w.Warm.closing && w.Warm.operated {
		w.Warm.closing = true
		w.Time.After(0, w.closeWarm)
	}
}

// DrawWarmJob draws the size of a job's machine. It moves the job away from the spare pool,
// which may be deleted.
func (w *Capacity) DrawWarmJob(d map[string]any) {
	if d["pool"] == spare {
		d["pool"] = w.Config.Pool
	}
	if w.Chance(0.3) {
		d["resources"] = map[string]any{"memoryMB": 512}
	}
}
