package job_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// fired returns one line for each firing.
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
	early, due := j.Fire(j.WakeAt.Add(-1), 0, 20)
	wantFired(t, due)
	wantNext(t, early, j.NextAt, j.WakeAt)
	j, due = j.Fire(j.WakeAt, 0, 20)
	wantFired(t, due, "02 13:00:00 schedule")
	wantNext(t, j, noon.Add(2*time.Hour), noon.Add(2*time.Hour))
	for _, now := range []time.Time{noon.Add(time.Hour), noon.Add(-240 * time.Hour), noon.Add(2*time.Hour - 1)} {
		if _, again := j.Fire(now, 0, 20); len(again) > 0 {
			t.Errorf("at %s: got %s again", now, fired(again))
		}
	}
	if _, due = j.Pause(noon).Fire(noon.Add(24*time.Hour), 0, 20); len(due) > 0 {
		t.Errorf("paused: got %s, want none", fired(due))
	}
}

func TestOneShotScheduleFiresOnce(t *testing.T) {
	t.Parallel()
	j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"@at 2026-03-02T12:30:00Z\"\n"), "me", noon)
	j, due := j.Fire(noon.Add(31*time.Minute), 0, 20)
	wantFired(t, due, "02 12:30:00 schedule")
	wantNext(t, j, time.Time{}, time.Time{})
}

func TestNewestMissedTimeStarts(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon)
	after, due := j.Fire(noon.Add(5*time.Hour+job.DefaultDeadline), 0, 20)
	wantFired(t, due, "02 13:00:00 x4 until 02 16:00:00 missed", "02 17:00:00 schedule")
	wantNext(t, after, noon.Add(6*time.Hour), noon.Add(6*time.Hour))
	_, due = j.Fire(noon.Add(5*time.Hour+job.DefaultDeadline+1), 0, 20)
	wantFired(t, due, "02 13:00:00 x5 until 02 17:00:00 missed")
}

// TestMissedTimesOfShortIntervals stops the process for 40 s. Lateness must be relative to the
// interval of the schedule.
func TestMissedTimesOfShortIntervals(t *testing.T) {
	t.Parallel()
	for more, want := range map[string][]string{
		"":                                     {"02 12:00:02 x19 until 02 12:00:38 missed", "02 12:00:40 schedule"},
		"missed: latest\n":                     {"02 12:00:02 x19 until 02 12:00:38 missed", "02 12:00:40 schedule"},
		"missed: none\n":                       {"02 12:00:02 x20 until 02 12:00:40 missed"},
		"missed: all\nstartingDeadline: 10s\n": {"02 12:00:02 x15 until 02 12:00:30 starting_deadline", "02 12:00:32 catch_up", "02 12:00:34 catch_up", "02 12:00:36 catch_up", "02 12:00:38 catch_up", "02 12:00:40 schedule"},
		"constraints: {catchUp: true, catchUpWindow: 4s}\n": {"02 12:00:02 x18 until 02 12:00:36 catch_up_window", "02 12:00:38 catch_up", "02 12:00:40 schedule"},
	} {
		j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"@every 2s\"\n"+more), "me", noon)
		after, due := j.Fire(noon.Add(41*time.Second), 0, 20)
		wantFired(t, due, want...)
		_, due = after.Fire(after.WakeAt.Add(time.Second), 0, 20)
		wantFired(t, due, "02 12:00:42 schedule")
	}
}

// TestWakeUpsMayBeImprecise fires all times that are due at one wake-up of a platform with a
// precision of a minute, and no older ones.
func TestWakeUpsMayBeImprecise(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "missed: none\n"} {
		j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"@every 20s\"\n"+more), "me", noon)
		_, due := j.Fire(noon.Add(75*time.Second), time.Minute, 20)
		wantFired(t, due, "02 12:00:20 schedule", "02 12:00:40 schedule", "02 12:01:00 schedule")
		_, due = j.Fire(noon.Add(2*time.Minute+15*time.Second), time.Minute, 20)
		wantFired(t, due, "02 12:00:20 x3 until 02 12:01:00 missed", "02 12:01:20 schedule", "02 12:01:40 schedule", "02 12:02:00 schedule")
	}
}

func TestMissedFiringsAreCaughtUp(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, catchUp), "me", noon)
	_, due := j.Fire(noon.Add(3*time.Hour+time.Second), 0, 20)
	wantFired(t, due, "02 13:00:00 catch_up", "02 14:00:00 catch_up", "02 15:00:00 schedule")
	_, due = j.Fire(noon.Add(3*time.Hour+job.DefaultDeadline+1), 0, 20)
	wantFired(t, due, "02 13:00:00 catch_up", "02 14:00:00 catch_up", "02 15:00:00 catch_up")
	j = job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"* * * * *\"\n"+catchUp), "me", noon)
	_, due = j.Fire(noon.Add(2*time.Minute), 0, 20) // on time, but after the next time
	wantFired(t, due, "02 12:01:00 catch_up", "02 12:02:00 schedule")
}

func TestCatchUpWindowBoundsCatchUp(t *testing.T) {
	t.Parallel()
	for _, schedule := range []string{"0 * * * *", "@every 1h"} {
		const constraints = "constraints: {catchUp: true, catchUpWindow: 2h}\n"
		j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \""+schedule+"\"\n"+constraints), "me", noon)
		_, due := j.Fire(noon.Add(5*time.Hour), 0, 20)
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
			if j, due = j.Fire(now, 0, 20); len(due) > 20 || len(due) == 0 {
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
	_, due := minutes("").Fire(noon.Add(3*time.Minute), 0, 20)
	wantFired(t, due, "02 12:03:00 schedule")
	_, due = minutes(catchUp).Fire(noon.Add(2*time.Minute), 0, 20)
	wantFired(t, due, "02 12:01:00 catch_up", "02 12:02:00 catch_up")
}

func TestFiringWithARunIsDone(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon)
	now := noon.Add(4 * time.Hour)
	after, due := j.Fire(now, 0, 20, noon.Add(time.Hour), noon.Add(4*time.Hour))
	wantFired(t, due, "02 14:00:00 x2 until 02 15:00:00 missed")
	wantNext(t, after, noon.Add(5*time.Hour), noon.Add(5*time.Hour))
}

// A firing that was stored before its schedule ended earlier, in a new time zone database, is
// dropped: also if a run has its time.
func TestStoredFiringAfterTheEndIsDropped(t *testing.T) {
	t.Parallel()
	for _, done := range [][]time.Time{nil, {noon.Add(time.Hour)}} {
		j := job.Create("t", hourly(t, "endAt: 2026-03-02T13:00:01Z\n"), "me", noon)
		j.Definition.EndAt = "2026-03-02T13:00:00Z"
		after, due := j.Fire(noon.Add(4*time.Hour), 0, 20, done...)
		wantFired(t, due)
		if !after.NextAt.IsZero() || !after.WakeAt.IsZero() {
			t.Errorf("got the next firing %s at %s, want none", after.NextAt, after.WakeAt)
		}
		if n := j.Upcoming(noon.Add(4*time.Hour), 20); n > 0 {
			t.Errorf("got %d firings to come, want none", n)
		}
	}
}

func TestJitterDelaysEachFiring(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, "jitter: 10m\n"), "me", noon)
	delay := j.Delay()
	if delay <= 0 || delay >= 10*time.Minute {
		t.Fatalf("got delay %s, want a part of 10m", delay)
	}
	if _, due := j.Fire(j.NextAt.Add(delay-1), 0, 20); len(due) > 0 {
		t.Errorf("got %s before the wake-up", fired(due))
	}
	j, due := j.Fire(j.NextAt.Add(delay+job.DefaultDeadline), 0, 20)
	wantFired(t, due, "02 13:00:00 schedule")
	wantNext(t, j, noon.Add(2*time.Hour), noon.Add(2*time.Hour+delay))
}

// TestEachTimeFiresOnce lets wake-ups come early, late, twice or never, during outages and with
// a clock that is set back. Each time of the schedule, and no other time, must be in exactly
// one firing.
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
		rule := rapid.SampledFrom([]string{"", "missed: latest\n", "missed: none\n", "missed: all\n", "missed: all\nstartingDeadline: 2h\n", "startingDeadline: 10s\n", "catchUp"}).Draw(t, "missed")
		constraints := "constraints: {maxConcurrentRuns: 1}\n"
		if rule == "catchUp" {
			rule, constraints = "", "constraints: {maxConcurrentRuns: 1, catchUp: true"+rapid.SampledFrom([]string{"", ", catchUpWindow: 10m", ", catchUpWindow: 3h"}).Draw(t, "window")+"}\n"
		}
		precision := rapid.SampledFrom([]time.Duration{0, 90 * time.Second}).Draw(t, "precision")
		jitter := rapid.SampledFrom([]string{"", "jitter: 30s\n"}).Draw(t, "jitter")
		if text == "@every 1s" {
			jitter = "" // it must be less than the interval
		}
		d, problems := job.Parse(fmt.Appendf(nil, "id: a\nimage: b\nschedule: %q\n%s\n%s%s%s", text, zoned, jitter, rule, constraints), nil)
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
			first := j.NextAt
			for commits := 0; !j.WakeAt.IsZero() && !j.WakeAt.After(now); commits++ {
				var due []job.Firing
				if j, due = j.Fire(now, precision, most); len(due) == 0 || len(due) > most || commits > 400 {
					t.Fatalf("got %d firings of commit %d, want 1 to %d", len(due), commits, most)
				}
				for _, f := range due {
					expected = covers(t, f, expected, schedule, began.Truncate(time.Second))
					next, ok := schedule.Next(expected.Add(-1), began.Truncate(time.Second))
					at := wake{now, now.Add(-j.Delay()), precision, first, ok && !next.After(now.Add(-j.Delay()))}
					checkFiring(t, f, at, d)
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

// covers checks that a firing starts with the expected time of the schedule, and returns the
// time after the firing.
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

// wake is a wake-up of a job.
type wake struct {
	// punctual is now minus the jitter.
	now, punctual time.Time
	precision     time.Duration
	// first is the first due time. later: a time after the firing is also due.
	first time.Time
	later bool
}

// checkFiring checks the trigger and the skip reason of a firing.
func checkFiring(t *rapid.T, f job.Firing, w wake, d job.Definition) {
	last, rule, oldest := f.At, d.Missed, w.punctual.Add(-job.DefaultDeadline)
	if f.Skipped != nil {
		last = f.Skipped.Until
	}
	if d.StartingDeadline != "" {
		oldest = w.punctual.Add(-d.StartingDeadline.Value())
	}
	if d.CatchesUp() {
		rule, oldest = job.MissedAll, time.Time{}
		if window := d.Constraints.CatchUpWindow.Value(); window > 0 {
			oldest = w.now.Add(-window)
		}
	}
	imprecise := last.Before(w.punctual.Add(-w.precision))
	missed := imprecise && w.later
	if rule == job.MissedNone {
		missed = missed || imprecise && !last.Equal(w.first)
	}
	allowed := map[run.SkipReason]bool{}
	switch {
	case rule != job.MissedAll:
		allowed[run.SkipMissed] = missed || last.Before(oldest)
	case d.CatchesUp():
		allowed[run.SkipWindow], allowed[run.SkipLimit] = last.Before(oldest), true
	default:
		allowed[run.SkipDeadline], allowed[run.SkipLimit] = last.Before(oldest), true
	}
	catchUp := rule == job.MissedAll && (missed || f.At.Before(w.punctual.Add(-job.DefaultDeadline)))
	switch {
	case f.At.After(w.punctual):
		t.Fatalf("got %s before its time", fired([]job.Firing{f}))
	case f.Skipped != nil:
		if !allowed[f.Skipped.Reason] {
			t.Fatalf("at %s: got %s, want one of %v", w.now, fired([]job.Firing{f}), allowed)
		}
	case f.At.Before(oldest), missed && rule != job.MissedAll:
		t.Fatalf("at %s: got %s, want it to be skipped", w.now, fired([]job.Firing{f}))
	case (f.Trigger == run.TriggerCatchUp) != catchUp:
		t.Fatalf("at %s: got %s, want catch_up %t", w.now, fired([]job.Firing{f}), catchUp)
	case catchUp && missed && !f.InTurn || f.InTurn && rule != job.MissedAll:
		t.Fatalf("at %s: got %s, in its turn %t", w.now, fired([]job.Firing{f}), f.InTurn)
	}
}

// TestUpcomingFirings counts the firings up to a time, each with its jitter.
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
