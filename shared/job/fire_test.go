package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/run"
)

// fired describes firings in one line each.
func fired(due []job.Firing) string {
	var lines []string
	for _, f := range due {
		line := f.At.Format("02 15:04:05 ") + string(f.Trigger)
		if f.Skipped != nil {
			line = fmt.Sprintf("%s x%d until %s %s", f.At.Format("02 15:04:05"), f.Skipped.Count, f.Skipped.Until.Format("02 15:04:05"), f.Skipped.Reason)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func wantFired(t *testing.T, due []job.Firing, want ...string) {
	t.Helper()
	if got := fired(due); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

const catchUp = "constraints: {catchUp: true}\n"

func TestFiringIsCommittedOnce(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon)
	early, due := j.Fire(j.WakeAt.Add(-1), 20)
	wantFired(t, due)
	wantNext(t, early, j.NextAt, j.WakeAt)
	j, due = j.Fire(j.WakeAt, 20)
	wantFired(t, due, "02 13:00:00 schedule")
	wantNext(t, j, noon.Add(2*time.Hour), noon.Add(2*time.Hour))
	for _, now := range []time.Time{noon.Add(time.Hour), noon.Add(-240 * time.Hour), noon.Add(2*time.Hour - 1)} {
		if _, again := j.Fire(now, 20); len(again) > 0 {
			t.Errorf("at %s: got %s again", now, fired(again))
		}
	}
	if _, due = j.Pause(noon).Fire(noon.Add(24*time.Hour), 20); len(due) > 0 {
		t.Errorf("paused: got %s, want none", fired(due))
	}
}

func TestOneShotScheduleFiresOnce(t *testing.T) {
	t.Parallel()
	j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"@at 2026-03-02T12:30:00Z\"\n"), "me", noon)
	j, due := j.Fire(noon.Add(31*time.Minute), 20)
	wantFired(t, due, "02 12:30:00 schedule")
	wantNext(t, j, time.Time{}, time.Time{})
}

func TestMissedFiringsAreSkipped(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon)
	after, due := j.Fire(noon.Add(5*time.Hour+job.OnTime), 20)
	wantFired(t, due, "02 13:00:00 x4 until 02 16:00:00 missed", "02 17:00:00 schedule")
	wantNext(t, after, noon.Add(6*time.Hour), noon.Add(6*time.Hour))
	_, due = j.Fire(noon.Add(5*time.Hour+job.OnTime+1), 20)
	wantFired(t, due, "02 13:00:00 x5 until 02 17:00:00 missed")
}

func TestMissedFiringsAreCaughtUp(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, catchUp), "me", noon)
	_, due := j.Fire(noon.Add(3*time.Hour+time.Second), 20)
	wantFired(t, due, "02 13:00:00 catch_up", "02 14:00:00 catch_up", "02 15:00:00 schedule")
	_, due = j.Fire(noon.Add(3*time.Hour+job.OnTime+1), 20)
	wantFired(t, due, "02 13:00:00 catch_up", "02 14:00:00 catch_up", "02 15:00:00 catch_up")
	j = job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"* * * * *\"\n"+catchUp), "me", noon)
	_, due = j.Fire(noon.Add(2*time.Minute), 20) // on time, but after the following time
	wantFired(t, due, "02 12:01:00 catch_up", "02 12:02:00 schedule")
}

func TestCatchUpWindowBoundsCatchUp(t *testing.T) {
	t.Parallel()
	for _, schedule := range []string{"0 * * * *", "@every 1h"} {
		const constraints = "constraints: {catchUp: true, catchUpWindow: 2h}\n"
		j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \""+schedule+"\"\n"+constraints), "me", noon)
		_, due := j.Fire(noon.Add(5*time.Hour), 20)
		wantFired(t, due, "02 13:00:00 x2 until 02 14:00:00 catch_up_window",
			"02 15:00:00 catch_up", "02 16:00:00 catch_up", "02 17:00:00 schedule")
	}
}

func TestCatchUpIsBounded(t *testing.T) {
	t.Parallel()
	for _, schedule := range []string{"@every 1s", "* * * * *"} {
		j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \""+schedule+"\"\n"+catchUp), "me", noon)
		now, skipped, caught := noon.AddDate(0, 3, 0), 0, 0
		for !j.WakeAt.After(now) {
			var due []job.Firing
			if j, due = j.Fire(now, 20); len(due) > 20 || len(due) == 0 {
				t.Fatalf("%s: got %d firings of one commit, want 1 to 20", schedule, len(due))
			}
			for _, f := range due {
				if f.Skipped != nil {
					skipped++
					if f.Skipped.Reason != run.SkipLimit || f.Skipped.Count < 100_000 {
						t.Errorf("%s: got %+v, want the firings beyond the limit", schedule, f.Skipped)
					}
					continue
				}
				caught++
			}
		}
		if skipped != 1 || caught != job.MaxCatchUp {
			t.Errorf("%s: got %d skipped spans and %d firings, want 1 and %d", schedule, skipped, caught, job.MaxCatchUp)
		}
	}
}

func TestPauseIsMissedOnlyByCatchUp(t *testing.T) {
	t.Parallel()
	minutes := func(more string) job.Job {
		j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"* * * * *\"\n"+more), "me", noon).Pause(noon.Add(time.Second))
		return j.Resume(noon.Add(2 * time.Minute))
	}
	_, due := minutes("").Fire(noon.Add(3*time.Minute), 20)
	wantFired(t, due, "02 12:03:00 schedule")
	_, due = minutes(catchUp).Fire(noon.Add(2*time.Minute), 20)
	wantFired(t, due, "02 12:01:00 catch_up", "02 12:02:00 catch_up")
}

func TestFiringWithARunIsDone(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon)
	now := noon.Add(4 * time.Hour)
	after, due := j.Fire(now, 20, noon.Add(time.Hour), noon.Add(4*time.Hour))
	wantFired(t, due, "02 14:00:00 x2 until 02 15:00:00 missed")
	wantNext(t, after, noon.Add(5*time.Hour), noon.Add(5*time.Hour))
}

func TestJitterDelaysEachFiring(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, "jitter: 10m\n"), "me", noon)
	delay := j.Delay()
	if delay <= 0 || delay >= 10*time.Minute {
		t.Fatalf("got delay %s, want a part of 10m", delay)
	}
	if _, due := j.Fire(j.NextAt.Add(delay-1), 20); len(due) > 0 {
		t.Errorf("got %s before the wake-up", fired(due))
	}
	j, due := j.Fire(j.NextAt.Add(delay+job.OnTime), 20)
	wantFired(t, due, "02 13:00:00 schedule")
	wantNext(t, j, noon.Add(2*time.Hour), noon.Add(2*time.Hour+delay))
}

// TestEachTimeFiresOnce lets wake-ups come early, late, twice or never, during outages
// and under a clock that is set back: each time of the schedule, and no other, is in
// exactly one firing.
func TestEachTimeFiresOnce(t *testing.T) {
	t.Parallel()
	all := zones(t)
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(all).Draw(t, "zone")
		text := rapid.SampledFrom([]string{
			"@every 1s", "@every 7m", "@every 36h", "* * * * *", "*/7 1-3 * * *", "30 2 * * *", "15 */2 * * SUN", "0 0 1,15 * *",
		}).Draw(t, "schedule")
		zoned := "timeZone: " + zone
		if strings.HasPrefix(text, "@") {
			zoned = ""
		}
		catches := rapid.Bool().Draw(t, "catchUp")
		window := rapid.SampledFrom([]string{"", ", catchUpWindow: 10m", ", catchUpWindow: 3h"}).Draw(t, "window")
		jitter := rapid.SampledFrom([]string{"", "jitter: 30s\n"}).Draw(t, "jitter")
		if text == "@every 1s" {
			jitter = "" // it has to be less than the interval
		}
		d, problems := job.Parse(fmt.Appendf(nil, "id: a\nimage: b\nschedule: %q\n%s\n%sconstraints: {catchUp: %t%s}\n", text, zoned, jitter, catches, window), nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		schedule, err := job.ParseSchedule(text, zone)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(1_000_000_000, 1_900_000_000).Draw(t, "start"), rapid.Int64Range(0, 999_999_999).Draw(t, "fraction")).UTC()
		j := job.Create("t", d, "me", now)
		most := rapid.IntRange(2, 20).Draw(t, "most")
		expected, latest, began := j.NextAt, now, now
		for range rapid.IntRange(1, 30).Draw(t, "wakeUps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{
				-3 * time.Hour, -time.Second, 0, 300 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 6 * time.Minute, time.Hour, 26 * time.Hour,
			}).Draw(t, "step"))
			if rapid.Bool().Draw(t, "onTime") && j.WakeAt.After(now) && j.WakeAt.Before(now.Add(48*time.Hour)) {
				now = j.WakeAt
			}
			if now.After(latest) {
				latest = now
			}
			for commits := 0; !j.WakeAt.IsZero() && !j.WakeAt.After(now); commits++ {
				var due []job.Firing
				if j, due = j.Fire(now, most); len(due) == 0 || len(due) > most || commits > 400 {
					t.Fatalf("got %d firings of commit %d, want 1 to %d", len(due), commits, most)
				}
				for _, f := range due {
					expected = covers(t, f, expected, schedule, began.Truncate(time.Second))
					checkFiring(t, f, now.Add(-j.Delay()), catches, d.Constraints.CatchUpWindow.Value())
				}
			}
			if !j.NextAt.Equal(expected) || !j.WakeAt.Equal(expected.Add(j.Delay())) {
				t.Fatalf("at %s: got next firing %s, wake-up %s, want %s", now, j.NextAt, j.WakeAt, expected)
			}
		}
		if !j.WakeAt.After(latest) {
			t.Fatalf("got wake-up %s, want one after %s", j.WakeAt, latest)
		}
	})
}

// covers checks that a firing starts with the expected time of the schedule, and
// returns the time after it.
func covers(t *rapid.T, f job.Firing, expected time.Time, s job.Schedule, since time.Time) time.Time {
	count := 1
	if f.Skipped != nil {
		count = f.Skipped.Count
	}
	if !f.At.Equal(expected) {
		t.Fatalf("got %s, want the firing of %s", fired([]job.Firing{f}), expected)
	}
	for i := range count {
		if f.Skipped != nil && i == count-1 && !f.Skipped.Until.Equal(expected) {
			t.Fatalf("got %s, want %d firings until %s", fired([]job.Firing{f}), count, expected)
		}
		expected, _ = s.Next(expected, since)
	}
	return expected
}

// checkFiring checks what a firing that is committed at a time without its jitter does.
func checkFiring(t *rapid.T, f job.Firing, at time.Time, catches bool, window time.Duration) {
	late := at.Sub(f.At)
	allowed := []run.SkipReason{run.SkipMissed}
	if catches {
		allowed = []run.SkipReason{run.SkipLimit}
		if window > 0 {
			allowed = append(allowed, run.SkipWindow)
		}
	}
	switch {
	case late < 0:
		t.Fatalf("got %s before its time", fired([]job.Firing{f}))
	case f.Skipped != nil:
		if !slices.Contains(allowed, f.Skipped.Reason) {
			t.Fatalf("got %s, want one of %v", fired([]job.Firing{f}), allowed)
		}
	case late > job.OnTime && f.Trigger != run.TriggerCatchUp, f.Trigger == run.TriggerCatchUp && !catches:
		t.Fatalf("got %s, %s late", fired([]job.Firing{f}), late)
	case catches && window > 0 && late > window:
		t.Fatalf("got %s, %s late, want at most %s", fired([]job.Firing{f}), late, window)
	}
}

// TestUpcomingFirings counts the firings until a time, each with its jitter.
func TestUpcomingFirings(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, "jitter: 10m\n"), "me", noon)
	last := j.NextAt.Add(2*time.Hour + j.Delay())
	for until, want := range map[time.Time]int{noon: 0, j.WakeAt.Add(-1): 0, j.WakeAt: 1, last.Add(-1): 2, last: 3, noon.Add(1000 * time.Hour): 20} {
		if got := j.Upcoming(until, 20); got != want {
			t.Errorf("until %s: got %d firings, want %d", until, got, want)
		}
	}
	if got := j.Pause(noon).Upcoming(last, 20); got != 0 {
		t.Errorf("paused: got %d firings, want none", got)
	}
	every := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"@every 1m\"\n"), "me", noon)
	if got := every.Upcoming(noon.Add(90*time.Minute), 1000); got != 90 {
		t.Errorf("every minute: got %d firings, want 90", got)
	}
}
