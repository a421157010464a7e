package job

import (
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// validateSchedule checks when the job fires.
func validateSchedule(d Definition, adHoc bool, p *problems) {
	if _, err := parseZone(d.TimeZone); err != nil {
		p.bad("timeZone", "%v", err)
	}
	p.duration("jitter", d.Jitter, time.Second, maxJitter)
	validateMissed(d, p)
	if !d.Scheduled() {
		for _, field := range []struct {
			name  string
			given bool
		}{
			{"timeZone", d.TimeZone != ""},
			{"jitter", d.Jitter != ""},
			{"missed", d.Missed != ""},
			{"startingDeadline", d.StartingDeadline != ""},
			{"startAt", d.StartAt != ""},
			{"endAt", d.EndAt != ""},
			{"calendars", len(d.Calendars) > 0},
			{"constraints.catchUp", d.Constraints != nil && given(d.Constraints.CatchUp)},
		} {
			if field.given {
				p.addConflict(field.name, "no meaning without a schedule; leave it out, or add a schedule")
			}
		}
		return
	}
	validateTimes(d, adHoc, p)
	validateBounds(d, p)
	validateCalendars(d, p)
}

// validateTimes checks the expressions of the schedule.
func validateTimes(d Definition, adHoc bool, p *problems) {
	if d.Schedule != "" && len(d.Schedules) > 0 {
		p.addConflict("schedules", "schedule and schedules, want one of them")
	}
	if len(d.Schedules) > maxSchedules {
		p.bad("schedules", "%d schedules, want at most %d", len(d.Schedules), maxSchedules)
	}
	crons := 0
	for field, text := range d.expressions() {
		if adHoc {
			p.bad(strings.TrimRight(field, ".0123456789"), "schedule of a single run, want no schedule")
			return
		}
		t, err := parseTimes(text, time.UTC)
		switch {
		case err != nil:
			p.bad(field, "%v", err)
			return
		case t.every > 0 && field != "schedule":
			p.addConflict(field, "@every in a list, want cron expressions and @at; an interval is a schedule of its own")
		case t.every > 0 && d.Jitter.Value() >= t.every:
			p.addConflict("jitter", "%s is too long, want less than the interval of %s", d.Jitter, t.every)
		case t.cron != nil:
			crons++
		}
	}
	if crons > 0 {
		return
	}
	if d.TimeZone != "" {
		p.addConflict("timeZone", "no meaning with @every and @at; leave it out, or use a cron expression")
	}
	if len(d.Calendars) > 0 {
		p.addConflict("calendars", "no meaning with @every and @at; leave it out, or use a cron expression")
	}
}

// maxSchedules is the maximum number of expressions of a job.
const maxSchedules = 20

// validateBounds checks the start and the end of the schedule.
func validateBounds(d Definition, p *problems) {
	zone, err := parseZone(d.TimeZone)
	if err != nil {
		return // reported with the zone
	}
	var bounds [2]time.Time
	for i, field := range []struct{ name, text string }{{"startAt", d.StartAt}, {"endAt", d.EndAt}} {
		if bounds[i], err = parseBound(field.text, zone); err != nil {
			p.bad(field.name, "time %q, want a date such as 2027-03-01, or RFC 3339 such as 2027-03-01T08:00:00Z", limit.Cut(field.text, nameLimit))
			return
		}
	}
	if d.StartAt != "" && d.EndAt != "" && !bounds[0].Before(bounds[1]) {
		p.addConflict("endAt", "%s is not after startAt, want a later time", d.EndAt)
	}
}

// validateMissed checks the rules for missed times.
func validateMissed(d Definition, p *problems) {
	oneOf(p, "missed", d.Missed, MissedLatest, MissedAll, MissedNone)
	p.duration("startingDeadline", d.StartingDeadline, minDeadline, maxWindow)
	if !d.CatchesUp() {
		return
	}
	if d.Missed == MissedLatest || d.Missed == MissedNone {
		p.addConflict("missed", "%s contradicts constraints.catchUp: true, which starts all; leave one out", d.Missed)
	}
	if d.StartingDeadline != "" {
		p.addConflict("startingDeadline", "no meaning with constraints.catchUp: true, whose limit is constraints.catchUpWindow; leave it out")
	}
}
