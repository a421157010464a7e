package fleet_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// paced returns a limiter with a start interval of one second for each app, after a throttled
// start.
func paced(apps ...string) fleet.StartLimiter {
	var paces []fleet.StartPace
	for _, app := range apps {
		paces = append(paces, fleet.StartPace{App: app, Interval: time.Second})
	}
	g, _ := fleet.StartLimiter{Pool: "p"}.Throttled(paces, apps[0], time.Time{}, epoch)
	return g
}

// throttledRun returns a run that is queued after a throttled start.
func throttledRun() run.Run {
	r := run.Run{State: run.ContainerCreating}
	r.Attempt.Number, r.Slot.State = 1, platform.SlotQueued
	return r
}

// TestGatePacesEachApp takes each permit as soon as it is available. Each app must give one per
// interval, and no permit too far in the future.
func TestGatePacesEachApp(t *testing.T) {
	t.Parallel()
	g, r := paced("a", "b"), throttledRun()
	last, given := map[string]time.Time{}, 0
	for now := epoch; now.Before(epoch.Add(time.Minute)); now = now.Add(100 * time.Millisecond) {
		for {
			f, after, ok := g.Grant(r, 0, now)
			if !ok {
				break
			}
			if gap := f.StartAt.Sub(last[f.App]); gap < time.Second || f.StartAt.Before(now) || f.StartAt.Sub(now) > 5*time.Second {
				t.Fatalf("got a permit of %s %s after the last one and %s ahead, want 1s and at most 5s", f.App, gap, f.StartAt.Sub(now))
			}
			given, g, last[f.App] = given+1, *after, f.StartAt
		}
	}
	if given < 120 || given > 135 {
		t.Errorf("got %d permits of two apps in a minute, want about 120", given)
	}
}

// TestGateSlowsDown throttles permitted starts. The tries must become rare, and an accepted
// start must restore the rate.
func TestGateSlowsDown(t *testing.T) {
	t.Parallel()
	g, r, now, tries := paced("a"), throttledRun(), epoch, 0
	for until := epoch.Add(6 * time.Hour); now.Before(until); now = now.Add(time.Second) {
		f, after, ok := g.Grant(r, 0, now)
		if !ok {
			continue
		}
		tries, now = tries+1, f.StartAt
		g, _ = after.Throttled(after.Apps, "a", f.StartAt, now)
	}
	if tries < 60 || tries > 100 {
		t.Errorf("got %d tries in six hours, want 60 to 100", tries)
	}
	g, changed := g.Accepted("a", now)
	f, _, ok := g.Grant(r, 0, now)
	if !changed || !ok || f.StartAt.Sub(now) > time.Second {
		t.Errorf("got permit %s after %s (%t), want one within 1s", f.StartAt, now, ok)
	}
}

// TestStartsWithoutAPermitSlowTheGateOnce throttles many starts that had no permit. They must
// not reduce the rate further.
func TestStartsWithoutAPermitSlowTheGateOnce(t *testing.T) {
	t.Parallel()
	g := paced("a")
	for range 1000 {
		g, _ = g.Throttled(g.Apps, "a", time.Time{}, epoch)
	}
	if f, _, ok := g.Grant(throttledRun(), 0, epoch); !ok || f.StartAt.Sub(epoch) > time.Second {
		t.Errorf("got permit %s (%t), want one after 1s", f.StartAt.Sub(epoch), ok)
	}
}

// TestGatePacesOnlyThrottledPools grants without a permit if no start was throttled, or if the
// last permit of a pool with a limit is long past.
func TestGatePacesOnlyThrottledPools(t *testing.T) {
	t.Parallel()
	pending := run.Run{State: run.Pending, Slot: platform.Slot{State: platform.SlotQueued}}
	constrained := pending
	constrained.Constraints = &spec.Constraints{RequirePreviousSuccess: true}
	for name, row := range map[string]struct {
		limiter fleet.StartLimiter
		r       run.Run
		limit   int
		after   time.Duration
		paced   bool
	}{
		"nothing was throttled":          {fleet.StartLimiter{}, pending, 4, 0, false},
		"pool with a limit":              {paced("a"), pending, 4, 0, true},
		"pool with a limit, later":       {paced("a"), pending, 4, time.Hour, false},
		"throttled run, later":           {paced("a"), throttledRun(), 4, time.Hour, true},
		"pool without a limit, later":    {paced("a"), pending, 0, time.Hour, true},
		"run whose constraints are next": {paced("a"), constrained, 4, 0, false},
	} {
		if f, after, ok := row.limiter.Grant(row.r, row.limit, epoch.Add(row.after)); !ok || (after != nil) != row.paced || f.StartAt.IsZero() == row.paced {
			t.Errorf("%s: got permit %s (%t), want one: %t", name, f.StartAt, ok, row.paced)
		}
	}
}

// TestBucketPermitsItsBurst takes tokens of two apps with a documented limit as soon as they
// are available. Direct starts and grants together must get the bursts of both apps first, then
// one token per app and interval.
func TestBucketPermitsItsBurst(t *testing.T) {
	t.Parallel()
	apps := []fleet.StartPace{{App: "a", Interval: time.Second, Burst: 3}, {App: "b", Interval: time.Second, Burst: 3}}
	g, given := fleet.StartLimiter{Pool: "p"}, map[string][]time.Time{}
	for tick := range 600 {
		now := epoch.Add(time.Duration(tick) * 100 * time.Millisecond)
		for {
			if tick%2 == 0 {
				app, after, limited, ok := g.Take(apps, now)
				if !limited {
					t.Fatal("got no limit, want that of the apps")
				}
				if !ok {
					break
				}
				g, given[app] = after, append(given[app], now)
				continue
			}
			f, after, ok := g.Grant(throttledRun(), 0, now)
			if !ok || f.StartAt.After(now) {
				break
			}
			g, given[f.App] = *after, append(given[f.App], f.StartAt)
		}
	}
	for app, at := range given {
		if len(at) < 60 || len(at) > 63 || at[2] != epoch || !at[3].Equal(epoch.Add(time.Second)) {
			t.Errorf("app %s: got %d permits in a minute, the first at %v, want 3 at once and then one per second", app, len(at), at[:4])
		}
	}
	if _, _, limited, _ := g.Take([]fleet.StartPace{{App: "a", Interval: time.Second}}, epoch); limited {
		t.Error("got a limit of a platform that documents none")
	}
	rested := epoch.Add(time.Hour)
	for i := range 3 {
		app, after, _, ok := g.Take(apps[:1], rested)
		if g = after; !ok || app != "a" {
			t.Fatalf("start %d after a rest: got %t in %q, want it permitted in a", i, ok, app)
		}
	}
	if _, _, _, ok := g.Take(apps[:1], rested); ok || !g.Paced(rested) {
		t.Error("got a fourth start at once, want the burst to be 3")
	}
}

// TestThrottledBucketIsEmpty throttles a start that had a token. The bucket must then be empty.
// An accepted start must restore the rate, but not the burst.
func TestThrottledBucketIsEmpty(t *testing.T) {
	t.Parallel()
	apps := []fleet.StartPace{{App: "a", Interval: time.Second, Burst: 3}}
	app, g, _, ok := fleet.StartLimiter{Pool: "p"}.Take(apps, epoch)
	if !ok {
		t.Fatalf("got no start at %q, want the first", app)
	}
	g, _ = g.Throttled(apps, "a", epoch, epoch)
	if _, _, _, ok := g.Take(apps, epoch.Add(time.Second)); ok {
		t.Error("got a start a second after a throttled one, want the pace halved")
	}
	at := epoch.Add(2 * time.Second)
	if _, after, _, ok := g.Take(apps, at); !ok {
		t.Error("got no start two seconds after a throttled one")
	} else if g, _ = after.Accepted("a", at); g.Closed("a", at.Add(time.Second)) || !g.Closed("a", at.Add(900*time.Millisecond)) {
		t.Errorf("got permit %s after the accepted start at %s, want it a second later", g.Apps[0].Permit(), at)
	}
}
