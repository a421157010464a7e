package suite

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func schedules() []Test {
	needs := []Capability{Programs}
	return []Test{
		{Name: "schedule fires at its times", Requires: needs, Run: scheduleFires},
		{Name: "one-shot schedule fires once", Requires: needs, Run: oneShot},
		{Name: "times of a pause are caught up within the window", Requires: append(slices.Clone(needs), ShortWindows), Run: pauseIsCaughtUp},
		{Name: "times of a pause are not caught up without the constraint", Requires: needs, Run: pauseIsNotCaughtUp},
	}
}

// shortInterval is the interval of the tests' schedules.
const shortInterval = 2 * time.Second

// wakeUpPrecision limits the delay of a wake-up. The sweep finds a lost wake-up later.
const wakeUpPrecision = time.Minute

func everyInterval() document {
	// A busy target may miss times. With "all" it starts them nevertheless.
	return script("true").with("schedule", "@every "+shortInterval.String()).with("missed", "all")
}

func (c *Case) pause(path string) {
	c.T.Helper()
	send[api.JobAnswer](c, http.MethodPost, path+"/pause", "", http.StatusOK)
}

func (c *Case) resume(path string) api.JobAnswer {
	c.T.Helper()
	j, _ := send[api.JobAnswer](c, http.MethodPost, path+"/resume", "", http.StatusOK)
	return j
}

// scheduleFires checks the runs of an interval: one for each of its times, counted from the
// change of the schedule.
func scheduleFires(c *Case) {
	path := c.job("interval", everyInterval())
	since := outside.Get[api.JobAnswer](c.Client, path).CreatedAt
	c.runsThat(path, 3, hasEnded)
	c.pause(path)
	runs := c.runs(path)
	for i, r := range runs {
		at := since.Add(time.Duration(i+1) * shortInterval)
		if !r.ScheduledAt.Truncate(time.Second).Equal(at.Truncate(time.Second)) || r.RunID != fmt.Sprintf("%s:%s", jobID(path), r.ScheduledAt.UTC().Format("20060102T150405Z")) {
			c.T.Errorf("got run %s of %s, want that of %s", r.RunID, r.ScheduledAt, at)
		}
		if r.Trigger != "schedule" && r.Trigger != "catch_up" || r.LatenessSeconds == nil || r.FiredAt.Before(r.ScheduledAt) || *r.LatenessSeconds > wakeUpPrecision.Seconds() {
			c.T.Errorf("got %+v, want a firing within %s of its time", r, wakeUpPrecision)
		}
	}
	c.eventually("later time of the paused schedule", func() bool {
		return c.soon(path, 0).After(runs[len(runs)-1].ScheduledAt.Add(2 * shortInterval))
	})
	if later := c.runs(path); len(later) != len(runs) {
		c.T.Errorf("got %d runs during the pause, want %d", len(later), len(runs))
	}
}

func oneShot(c *Case) {
	path := c.jobPath("one-shot")
	at := c.soon("/healthz", 8*time.Second)
	c.job("one-shot", script("true").with("schedule", "@at "+at.Format(time.RFC3339)))
	if runs := c.runsThat(path, 1, hasEnded); len(runs) != 1 || !runs[0].ScheduledAt.Equal(at) || runs[0].State != "Completed" {
		c.T.Errorf("got %+v, want one completed run of %s", runs, at)
	}
	if j := outside.Get[api.JobAnswer](c.Client, path); !j.NextAt.IsZero() {
		c.T.Errorf("got the next firing %s, want none", j.NextAt)
	}
}

// pauseIsCaughtUp pauses a schedule for longer than its window. One skipped run records the
// times before the window, and each later time is a run.
func pauseIsCaughtUp(c *Case) {
	const window = 3 * shortInterval
	path := c.job("catch-up", everyInterval().with("constraints", document{"catchUp": true, "catchUpWindow": window.String()}))
	c.pause(path)
	until := c.soon(path, window+3*shortInterval)
	c.eventually("end of the pause", func() bool { return c.soon(path, 0).After(until) })
	resumed := c.soon(path, 0)
	c.resume(path)
	c.runsThat(path, 2, func(r contract.Task) bool { return r.Missed == nil })
	c.pause(path)
	first := c.runs(path)[0]
	if !first.Skipped || first.State != "Completed" || first.Missed == nil || first.Missed.Reason != "catch_up_window" || first.Missed.Count < 1 {
		c.T.Fatalf("got %+v first, want a record of skipped times", first)
	}
	// A busy target may start it after the window, or wake up after all times of the pause.
	next := first.Missed.Until.Add(shortInterval)
	caught := c.runsThat(path, 1, func(r contract.Task) bool { return r.ScheduledAt.Equal(next) && hasEnded(r) })[0]
	if late := caught.ScheduledAt.Before(resumed); late && caught.Trigger != "catch_up" || caught.State != "Completed" || caught.Skipped && violated(caught) == "" {
		c.T.Errorf("got %+v caught up first, want a completed run", caught)
	}
}

func pauseIsNotCaughtUp(c *Case) {
	path := c.job("no-catch-up", everyInterval().with("missed", "latest"))
	c.pause(path)
	paused := c.soon(path, 0) // a slow target may fire once before the pause
	until := c.soon(path, 2*shortInterval)
	c.eventually("end of the pause", func() bool { return c.soon(path, 0).After(until) })
	resumed := c.resume(path)
	runs := c.runsThat(path, 1, func(r contract.Task) bool { return r.ScheduledAt.After(paused) })
	c.pause(path)
	if !runs[0].ScheduledAt.Equal(resumed.NextAt) || runs[0].Trigger != "schedule" {
		c.T.Errorf("got %+v first, want the run of %s", runs[0], resumed.NextAt)
	}
}
