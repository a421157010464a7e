package run

import (
	"slices"
	"time"
)

// StartGate paces the machine starts of a pool whose platform limits how often
// machines are created. Starts need no permit until the platform has throttled one.
// From then on each grant to a queued run takes the next permit of an app, so that
// the runs are started in order and at the pace of the platform. The zero value is
// open. A gate is a value; its methods return a changed copy.
type StartGate struct {
	Pool string `json:"pool"`
	// Version counts the changes. A change is conditional on it.
	Version int64 `json:"version"`
	// Apps are the places in which machines are created.
	Apps []StartPace `json:"apps,omitempty"`
}

// StartPace is the pace of one app.
type StartPace struct {
	// App is the runner's name of the place; it may be empty.
	App string `json:"app"`
	// Interval is the time between two starts.
	Interval time.Duration `json:"interval"`
	// Next is when the next start is permitted.
	Next time.Time `json:"next,omitzero"`
	// Refusals counts consecutive starts that were throttled although they were
	// permitted, SlowedAt is the time of the last one.
	Refusals int       `json:"refusals,omitempty"`
	SlowedAt time.Time `json:"slowedAt,omitzero"`
}

const (
	// gateHorizon is how far ahead a permit may be; a launch waits that long.
	gateHorizon = 5 * time.Second
	// gateCalm is how long after the next permit a gate paces the runs that wait only
	// for a slot.
	gateCalm = 30 * time.Second
	// slowestPace is the longest time between two tries if the platform throttles
	// permitted starts.
	slowestPace = 5 * time.Minute
)

// Closed reports whether a start in the app must wait for its permit.
func (g StartGate) Closed(app string, now time.Time) bool {
	i := g.index(app)
	return i >= 0 && g.Apps[i].Next.After(now)
}

// paces reports whether a grant to the queued run needs a permit. A queued run of a
// pool without a limit, and one whose start was throttled, can wait for nothing
// else.
func (g StartGate) paces(r Run, limit int, now time.Time) bool {
	starts := r.Attempt.Number > 0 || r.State == ActionRunning || !r.Constraints.BeforeRun()
	return len(g.Apps) > 0 && starts && (limit == 0 || r.State == ContainerCreating ||
		slices.ContainsFunc(g.Apps, func(p StartPace) bool { return now.Before(p.Next.Add(gateCalm)) }))
}

// Grant returns the fact that grants the queued run its slot of a pool with the
// limit, and the gate after it: nil if the grant needs no permit. ok is false if
// the next permit is too far ahead.
func (g StartGate) Grant(r Run, limit int, now time.Time) (f Granted, after *StartGate, ok bool) {
	f.Limit = limit
	if !g.paces(r, limit, now) {
		return f, nil, true
	}
	best := 0
	for i := range g.Apps {
		if g.Apps[i].Next.Before(g.Apps[best].Next) {
			best = i
		}
	}
	at := later(g.Apps[best].Next, now)
	if at.Sub(now) > gateHorizon {
		return f, nil, false
	}
	g.Apps = slices.Clone(g.Apps)
	pace := &g.Apps[best]
	pace.Next = at.Add(pace.gap())
	f.App, f.StartAt = pace.App, at
	return f, &g, true
}

// gap is the time to the next start: longer while permitted starts are throttled.
func (p StartPace) gap() time.Duration {
	return min(p.Interval<<min(p.Refusals, 20), max(slowestPace, p.Interval))
}

// Throttled returns the gate after the platform throttled a start in the app.
// permitted is the start's permit, zero without one. apps are the platform's
// apps with their intervals. changed is false if the gate is already slow enough.
func (g StartGate) Throttled(apps []StartPace, app string, permitted, now time.Time) (after StartGate, changed bool) {
	known := g.Apps
	g.Apps = slices.Clone(apps)
	for i := range g.Apps {
		if old := (StartGate{Apps: known}).index(g.Apps[i].App); old >= 0 {
			interval := g.Apps[i].Interval
			g.Apps[i] = known[old]
			g.Apps[i].Interval = interval
		}
	}
	i := g.index(app)
	if i < 0 {
		return g, false
	}
	pace := &g.Apps[i]
	if !permitted.IsZero() && !permitted.Before(pace.SlowedAt) {
		pace.Refusals, pace.SlowedAt = pace.Refusals+1, now
	}
	pace.Next = later(pace.Next, now.Add(pace.gap()))
	return g, !slices.Equal(known, g.Apps)
}

// Accepted returns the gate after a permitted start in the app was not throttled: a
// slowed app gets its pace back at once.
func (g StartGate) Accepted(app string, now time.Time) (after StartGate, changed bool) {
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
	return g, true
}

func (g StartGate) index(app string) int {
	return slices.IndexFunc(g.Apps, func(p StartPace) bool { return p.App == app })
}
