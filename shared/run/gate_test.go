package run_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// paced returns the gate of apps with one start per second, after a throttled one.
func paced(apps ...string) run.StartGate {
	var paces []run.StartPace
	for _, app := range apps {
		paces = append(paces, run.StartPace{App: app, Interval: time.Second})
	}
	g, _ := run.StartGate{Pool: "p"}.Throttled(paces, apps[0], time.Time{}, epoch)
	return g
}

// throttledRun waits in the queue after a throttled start.
func throttledRun() run.Run {
	r := run.Run{State: run.ContainerCreating}
	r.Attempt.Number, r.Slot.State = 1, run.SlotQueued
	return r
}

// TestGatePacesEachApp takes permits as fast as they are given: each app gets one
// per interval, and none is given too far ahead.
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

// TestGateSlowsDown throttles permitted starts: the tries become rare, and a start
// that is accepted restores the pace.
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

// TestStartsWithoutAPermitSlowTheGateOnce throttles many starts that had no permit:
// they say nothing about the pace.
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

// TestGatePacesOnlyThrottledPools grants without a permit where no start was
// throttled, and where the last permit of a pool with a limit is long over.
func TestGatePacesOnlyThrottledPools(t *testing.T) {
	t.Parallel()
	pending := run.Run{State: run.Pending, Slot: run.Slot{State: run.SlotQueued}}
	constrained := pending
	constrained.Constraints = &run.Constraints{RequirePreviousSuccess: true}
	for name, row := range map[string]struct {
		gate  run.StartGate
		r     run.Run
		limit int
		after time.Duration
		paced bool
	}{
		"nothing was throttled":          {run.StartGate{}, pending, 4, 0, false},
		"pool with a limit":              {paced("a"), pending, 4, 0, true},
		"pool with a limit, later":       {paced("a"), pending, 4, time.Hour, false},
		"throttled run, later":           {paced("a"), throttledRun(), 4, time.Hour, true},
		"pool without a limit, later":    {paced("a"), pending, 0, time.Hour, true},
		"run whose constraints are next": {paced("a"), constrained, 4, 0, false},
	} {
		if f, after, ok := row.gate.Grant(row.r, row.limit, epoch.Add(row.after)); !ok || (after != nil) != row.paced || f.StartAt.IsZero() == row.paced {
			t.Errorf("%s: got permit %s (%t), want one: %t", name, f.StartAt, ok, row.paced)
		}
	}
}
