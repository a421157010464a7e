package platform

import (
	"reflect"
	"time"
)

// Pool limits how many runs hold a slot at the same time, and how many may be queued. A
// pool is a value; its methods return a changed copy.
type Pool struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// Limit is the number of slots; 0 means no limit.
	Limit int `json:"limit"`
	// QueueLimit is the number of queued runs at which new ones are refused; 0 means no limit.
	QueueLimit int `json:"queueLimit"`
	// Placement is where the machines of the runs are created.
	Placement Placement `json:"placement,omitzero"`
	// Engine is where inference tasks run; nil for a pool of a runner, which Placement
	// describes.
	Engine *EnginePlace `json:"engine,omitempty"`
	// Sharing offers the pool to other tenants; nil without an offer. Origin is the pool of another
	// tenant that this one uses; nil for a pool with slots of its own.
	Sharing *Sharing `json:"sharing,omitempty"`
	Origin  *Origin  `json:"origin,omitempty"`
	// Fallbacks are the pools for runs whose machines the platform of this pool does not start,
	// in order.
	Fallbacks []Fallback `json:"fallbacks,omitempty"`
	// Warm are the settings of the warm machines; nil without warm machines.
	Warm *Warm `json:"warm,omitempty"`
	// WarmLeft: warm machines were disabled, and some may be left. A sweep clears it.
	WarmLeft bool `json:"warmLeft,omitempty"`
	// Draining: no run gets a slot. Runs join the queue and wait.
	Draining bool `json:"draining,omitempty"`
	// DrainBy is when the workers of runs with a slot are asked to end; zero means never. It is
	// zero unless the pool is draining.
	DrainBy time.Time `json:"drainBy,omitzero"`
	// Drained: a check after DrainBy found no run with a slot.
	Drained bool `json:"drained,omitempty"`
	// Version counts the commits of the record, from 1; 0 means a pool without a record.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
}

// PoolRef identifies a pool.
type PoolRef struct{ Tenant, ID string }

// Ref returns the pool's tenant and id.
func (p Pool) Ref() PoolRef { return PoolRef{p.Tenant, p.ID} }

// Resized returns the pool with the limits. A stored pool that already has them is unchanged.
func (p Pool) Resized(limit, queueLimit int, by string, now time.Time) Pool {
	if p.Version > 0 && p.Limit == limit && p.QueueLimit == queueLimit {
		return p
	}
	p.Limit, p.QueueLimit = limit, queueLimit
	return p.changed(by, now)
}

// Placed returns the pool with the placement. A pool that already has it is unchanged.
func (p Pool) Placed(where Placement, by string, now time.Time) Pool {
	if p.Placement.Equal(where) {
		return p
	}
	p.Placement = where
	return p.changed(by, now)
}

// FallingBack returns the pool with the fallbacks. A pool that already has them is unchanged.
func (p Pool) FallingBack(to []Fallback, by string, now time.Time) Pool {
	if len(p.Fallbacks) == 0 && len(to) == 0 || reflect.DeepEqual(p.Fallbacks, to) {
		return p
	}
	p.Fallbacks = to
	return p.changed(by, now)
}

// Shared returns the pool with the offers and the origin. A pool that already has them is unchanged.
func (p Pool) Shared(with *Sharing, from *Origin, by string, now time.Time) Pool {
	if reflect.DeepEqual(p.Sharing, with) && reflect.DeepEqual(p.Origin, from) {
		return p
	}
	p.Sharing, p.Origin = with, from
	return p.changed(by, now)
}

// Warmed returns the pool with the settings of warm machines. A pool that already has them is
// unchanged.
func (p Pool) Warmed(w *Warm, by string, now time.Time) Pool {
	if reflect.DeepEqual(p.Warm, w) {
		return p
	}
	p.Warm, p.WarmLeft = w, w == nil
	return p.changed(by, now)
}

// Drain returns the pool as draining, with a deadline; zero means no deadline. Draining again
// replaces the deadline.
func (p Pool) Drain(deadline time.Time, by string, now time.Time) Pool {
	if p.Draining && p.DrainBy.Equal(deadline) {
		return p
	}
	p.Draining, p.DrainBy, p.Drained = true, deadline.UTC().Round(0), false
	return p.changed(by, now)
}

// Resume returns the pool as admitting runs again.
func (p Pool) Resume(by string, now time.Time) Pool {
	if !p.Draining {
		return p
	}
	p.Draining, p.DrainBy, p.Drained = false, time.Time{}, false
	return p.changed(by, now)
}

func (p Pool) changed(by string, now time.Time) Pool {
	p.UpdatedAt, p.UpdatedBy = now.UTC().Round(0), by
	if p.Version == 0 {
		p.CreatedAt = p.UpdatedAt
	}
	return p
}

// DrainDue returns when the workers of the remaining runs are asked to end; zero without a
// deadline, and once no run remains.
func (p Pool) DrainDue() time.Time {
	if p.Drained {
		return time.Time{}
	}
	return p.DrainBy
}

// WarmEnded returns the pool with WarmLeft cleared. It changes nothing while a sweep that read
// the earlier settings may still create machines.
func (p Pool) WarmEnded(now time.Time) Pool {
	if p.WarmLeft && now.Sub(p.UpdatedAt) >= LongestSweep {
		p.WarmLeft = false
	}
	return p
}

// LongestSweep is the maximum duration of a sweep.
const LongestSweep = 15 * time.Minute

// Due returns when a sweep must process the pool: a past time if the pool has warm machines,
// otherwise DrainDue. Zero means never.
func (p Pool) Due() time.Time {
	if p.Warm != nil || p.WarmLeft {
		return p.CreatedAt
	}
	return p.DrainDue()
}

// Recycles reports whether warm machines of the pool are reused for further attempts.
func (p Pool) Recycles() bool { return p.Warm != nil && p.Warm.After == WarmRecycle && !p.Draining }
