// Package fleet plans the machines of pools: the pace of their starts, the replicas of engines
// that Sortie runs, the warm machines, and the phases of drains. It is pure, like package run.
package fleet

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// StartLimiter limits the rate of machine starts of a pool whose platform limits how often
// machines are created. It has a token bucket for each app with a documented limit. Each start
// takes a token of the app that permits one first. A start that finds no token waits in the
// queue. Other platforms need no permit until they have throttled a start. While the limiter
// limits the rate, each grant to a queued run takes the next permit of an app. So runs start in
// order and at the rate of the platform. The zero value is open. A limiter is a value; its methods
// return a changed copy.
type StartLimiter struct {
	Pool string `json:"pool"`
	// Version counts the changes. A commit of the limiter is conditional on it.
	Version int64 `json:"version"`
	// Apps are the places in which machines are created.
	Apps []StartPace `json:"apps,omitempty"`
}

// StartPace is the pace of one app.
type StartPace struct {
	// App is the runner's name of the place. It may be empty.
	App string `json:"app"`
	// Interval is the time between two starts.
	Interval time.Duration `json:"interval"`
	// Burst is how many starts the platform permits at once after a pause. 0 means that it
	// documents no limit.
	Burst int `json:"burst,omitempty"`
	// Next is when the bucket is full again; without a Burst, when the next start is permitted.
	// See Permit.
	Next time.Time `json:"next,omitzero"`
	// Refusals counts consecutive starts that were throttled although they were permitted.
	// SlowedAt is the time of the last one.
	Refusals int       `json:"refusals,omitempty"`
	SlowedAt time.Time `json:"slowedAt,omitzero"`
}

const (
	// permitHorizon is how far in the future a granted permit may be. The launch waits for it.
	permitHorizon = 5 * time.Second
	// limiterCalm is how long after Next the limiter still limits the grants to runs that wait only
	// for a slot.
	limiterCalm = 30 * time.Second
	// slowestPace is the longest time between two tries while the platform throttles permitted
	// starts.
	slowestPace = 5 * time.Minute
)

// Closed reports whether a start in the app must wait for its permit.
func (g StartLimiter) Closed(app string, now time.Time) bool {
	i := g.index(app)
	return i >= 0 && g.Apps[i].Permit().After(now)
}

// Paced reports whether the limiter has apps and no app permits a start now.
func (g StartLimiter) Paced(now time.Time) bool {
	return len(g.Apps) > 0 && !slices.ContainsFunc(g.Apps, func(p StartPace) bool { return !p.Permit().After(now) })
}

// Permit returns when the next start of the app is permitted.
func (p StartPace) Permit() time.Time {
	if p.Next.IsZero() {
		return p.Next
	}
	return p.Next.Add(-p.burstTime())
}

// burstTime returns how much earlier than at a constant rate a full bucket permits its last start:
// Burst-1 intervals. It is 0 while permitted starts are throttled.
func (p StartPace) burstTime() time.Duration {
	if p.Refusals > 0 || p.Burst <= 1 {
		return 0
	}
	return time.Duration(p.Burst-1) * p.Interval
}

// Permit returns the earliest time at which an app permits a start; zero without apps.
func (g StartLimiter) Permit() time.Time {
	if len(g.Apps) == 0 {
		return time.Time{}
	}
	return g.Apps[g.first()].Permit()
}

// Rate returns the number of starts per second that all apps permit together, used or not. It
// is 0 without apps.
func (g StartLimiter) Rate() (perSecond float64) {
	for _, app := range g.Apps {
		if gap := app.effectiveInterval(); gap > 0 {
			perSecond += float64(time.Second) / float64(gap)
		}
	}
	return perSecond
}

// Slowed reports whether the platform throttles starts of an app: permitted ones, or those of
// an app without a documented limit.
func (g StartLimiter) Slowed() bool {
	return slices.ContainsFunc(g.Apps, func(p StartPace) bool { return p.Refusals > 0 || p.Burst == 0 })
}

// take returns the pace after a start that is permitted at the time at.
func (p StartPace) take(at time.Time) StartPace {
	p.Next = later(p.Next, at).Add(p.effectiveInterval())
	return p
}

// first returns the index of the app with the earliest permit.
func (g StartLimiter) first() int {
	best := 0
	for i := range g.Apps {
		if g.Apps[i].Permit().Before(g.Apps[best].Permit()) {
			best = i
		}
	}
	return best
}

// Take takes a token for a start that did not wait in the queue. It returns the app and the changed
// limiter. apps are the platform's apps. limited is false if the platform documents no limit, and
// no token is needed. ok is false if no app permits a start now.
func (g StartLimiter) Take(apps []StartPace, now time.Time) (app string, after StartLimiter, limited, ok bool) {
	if !slices.ContainsFunc(apps, func(p StartPace) bool { return p.Burst > 0 }) {
		return "", g, false, false
	}
	g = g.withApps(apps)
	best := g.first()
	if g.Apps[best].Permit().After(now) {
		return "", g, true, false
	}
	g.Apps[best] = g.Apps[best].take(now)
	return g.Apps[best].App, g, true, true
}

// withApps returns the limiter for the platform's apps. It keeps the state of the apps that the
// limiter knows, and updates their Interval and Burst.
func (g StartLimiter) withApps(apps []StartPace) StartLimiter {
	known := g
	g.Apps = slices.Clone(apps)
	for i, app := range g.Apps {
		if old := known.index(app.App); old >= 0 {
			g.Apps[i] = known.Apps[old]
			g.Apps[i].Interval, g.Apps[i].Burst = app.Interval, app.Burst
		}
	}
	return g
}

// paces reports whether a grant to the queued run needs a permit. A run with a throttled start
// always does, and so does a run of a pool without a limit: both can wait only for a permit.
func (g StartLimiter) paces(r run.Run, limit int, now time.Time) bool {
	starts := r.Attempt.Number > 0 || r.State == run.ActionRunning || !r.Constraints.BeforeRun()
	return len(g.Apps) > 0 && starts && (limit == 0 || r.State == run.ContainerCreating ||
		slices.ContainsFunc(g.Apps, func(p StartPace) bool { return now.Before(p.Next.Add(limiterCalm)) }))
}

// Grant returns the fact that grants the queued run its slot of a pool with the limit. after is
// the limiter after it; nil if the grant needs no permit. ok is false if the next permit is too
// far in the future.
func (g StartLimiter) Grant(r run.Run, limit int, now time.Time) (f run.Granted, after *StartLimiter, ok bool) {
	f.Limit = limit
	if !g.paces(r, limit, now) {
		return f, nil, true
	}
	best := g.first()
	at := later(g.Apps[best].Permit(), now)
	if at.Sub(now) > permitHorizon {
		return f, nil, false
	}
	g.Apps = slices.Clone(g.Apps)
	g.Apps[best] = g.Apps[best].take(at)
	f.App, f.StartAt = g.Apps[best].App, at
	return f, &g, true
}

// effectiveInterval returns the time to the next start. It grows while permitted starts are
// throttled.
func (p StartPace) effectiveInterval() time.Duration {
	return min(p.Interval<<min(p.Refusals, 20), max(slowestPace, p.Interval))
}

// Throttled returns the limiter after the platform throttled a start in the app. permitted is the
// permit of the start; zero without one. apps are the platform's apps with their intervals.
// changed is false if the limiter is already slow enough.
func (g StartLimiter) Throttled(apps []StartPace, app string, permitted, now time.Time) (after StartLimiter, changed bool) {
	known := g.Apps
	g = g.withApps(apps)
	i := g.index(app)
	if i < 0 {
		return g, false
	}
	pace := &g.Apps[i]
	if !permitted.IsZero() && !permitted.Before(pace.SlowedAt) {
		pace.Refusals, pace.SlowedAt = pace.Refusals+1, now
	}
	pace.Next = later(pace.Next, now.Add(pace.effectiveInterval()+pace.burstTime()))
	return g, !slices.Equal(known, g.Apps)
}

// Accepted returns the limiter after a permitted start in the app was not throttled. A slowed app
// returns to its normal rate at once.
func (g StartLimiter) Accepted(app string, now time.Time) (after StartLimiter, changed bool) {
	i := g.index(app)
	if i < 0 || g.Apps[i].Refusals == 0 {
		return g, false
	}
	g.Apps = slices.Clone(g.Apps)
	pace := &g.Apps[i]
	pace.Refusals = 0
	if next := now.Add(pace.Interval); next.Before(pace.Next) {
		pace.Next = next
	}
	pace.Next = pace.Next.Add(pace.burstTime()) // the bucket is empty
	return g, true
}

// NotBefore returns the limiter after another pool has used up the limit of the app: no start in
// the app is permitted before the time at.
func (g StartLimiter) NotBefore(app string, at time.Time) (after StartLimiter, changed bool) {
	i := g.index(app)
	if i < 0 || !g.Apps[i].Permit().Before(at) {
		return g, false
	}
	g.Apps = slices.Clone(g.Apps)
	g.Apps[i].Next = at.Add(g.Apps[i].burstTime())
	return g, true
}

// AppLimiter returns the name of the limiter of an app whose limit several pools share. No pool has
// such a name.
func AppLimiter(app string) string { return "app/" + app }

func (g StartLimiter) index(app string) int {
	return slices.IndexFunc(g.Apps, func(p StartPace) bool { return p.App == app })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
