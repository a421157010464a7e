package jobs

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// CalendarPage shows when a job fires, the changes of its clock, and what an outage would do.
var CalendarPage = page.Page{
	Name: "job-calendar", Path: "jobs/{job_id}/calendar", Scope: access.RunsRead, Query: []string{"from", "to", "done"},
	Show: showCalendar,
}

// The sizes of the page.
const (
	calendarWeeks = 5
	// dayLimit is the largest number of firings that are counted for a day.
	dayLimit = 100
	// dayShown is the number of times that a day shows.
	dayShown = 3
	// calendarRuns is the number of newest runs that mark past days.
	calendarRuns = 100
	// simulated is the largest number of firings of a simulation.
	simulated = 60
	// longestOutage limits a simulated outage.
	longestOutage = 31 * 24 * time.Hour
)

// calendarData is the content of the page.
type calendarData struct {
	Head    jobHead
	Job     api.JobAnswer
	Words   string
	Zone    string
	Weeks   [][]calendarDay
	Changes []clockChange
	// Skipped are the newest runs of skipped firings.
	Skipped []page.RunRow
	// From and To are the fields of the form. Outage is the result; nil before the form is sent.
	From, To string
	Outage   *outage
}

// calendarDay is a day in the zone of the job.
type calendarDay struct {
	Label       string
	Today, Past bool
	// Times are the first firings of the day; More counts the others. Many: there are even more.
	Times []string
	More  int
	Many  bool
	// Runs are the firings of the day that became runs.
	Runs []calendarRun
	// Change describes a change of the clock.
	Change string
}

// Empty reports whether nothing happens on the day. Today is never empty.
func (d calendarDay) Empty() bool {
	return !d.Today && len(d.Times) == 0 && len(d.Runs) == 0 && d.Change == ""
}

// calendarRun is a firing that became a run. Count is the number of firings that it records.
type calendarRun struct {
	ui.Look
	Time, RunID string
	Count       int
}

// clockChange is a change of the clock in the zone of a job, with the firings of that day.
type clockChange struct {
	Day, Text string
	Firings   []string
}

// outage is a simulated outage.
type outage struct {
	From, To time.Time
	Firings  []outageFiring
}

// outageFiring is a simulated firing. Late is the time from its nominal time.
type outageFiring struct {
	job.SimulatedFiring
	State ui.Look
	Late  time.Duration
}

func showCalendar(v *page.Visit) (page.View, error) {
	id := v.Request.PathValue("job_id")
	path := "/v1/jobs/" + url.PathEscape(id)
	data := calendarData{}
	if err := v.Get(path, nil, &data.Job); err != nil {
		return page.View{}, err
	}
	j := data.Job
	zone := zoneOf(j.TimeZone)
	data.Head, data.Words, data.Zone = headOf(j, "calendar"), scheduleWords(j.ScheduleText()), zone.String()
	data.From, data.To = v.Now().Add(-8*time.Hour).Format(ui.FormTime), v.Now().Format(ui.FormTime)
	var runs contract.JobRuns
	if err := v.Get(path+"/runs", url.Values{"limit": {strconv.Itoa(calendarRuns)}}, &runs); err != nil {
		return page.View{}, err
	}
	for _, t := range runs.Runs {
		if t.Skipped && !t.ScheduledAt.IsZero() && len(data.Skipped) < dayShown {
			data.Skipped = append(data.Skipped, page.RowOf(t, v.Now()))
		}
	}
	if schedule, ok := j.Times(); ok {
		next := firingAfter(schedule, j, v.Now())
		data.Weeks = weeksOf(next, runs.Runs, v.Now().In(zone))
		data.Changes = changesOf(next, v.Now(), zone)
		var err error
		if data.Outage, err = outageOf(v, j, &data); err != nil {
			return page.View{}, err
		}
	}
	return page.View{Title: id + " · calendar", JSON: path, Command: ui.Command("jobs", "simulate", id+".yaml"), Content: data.content}, nil
}

// firingAfter returns a function that returns the first firing of a job after a time, or the zero
// time. A paused job fires as if it was resumed now.
func firingAfter(schedule job.Schedule, j api.JobAnswer, now time.Time) func(after time.Time) time.Time {
	first := j.NextAt
	if first.IsZero() && j.Paused {
		first, _ = schedule.Next(now, now)
	}
	return func(after time.Time) time.Time {
		if first.IsZero() || after.Before(first) {
			return first
		}
		next, _ := schedule.Next(after, first)
		return next
	}
}

// weeksOf returns the days of the present week and of those that follow.
func weeksOf(next func(time.Time) time.Time, runs []contract.Task, now time.Time) (weeks [][]calendarDay) {
	monday := now.Day() - (int(now.Weekday())+6)%7
	for week := range calendarWeeks {
		days := make([]calendarDay, 7)
		for i := range days {
			begin := time.Date(now.Year(), now.Month(), monday+7*week+i, 0, 0, 0, 0, now.Location())
			end := time.Date(now.Year(), now.Month(), monday+7*week+i+1, 0, 0, 0, 0, now.Location())
			days[i] = dayOf(next, runs, begin, end, now)
		}
		weeks = append(weeks, days)
	}
	return weeks
}

func dayOf(next func(time.Time) time.Time, runs []contract.Task, begin, end, now time.Time) calendarDay {
	d := calendarDay{Label: begin.Format("2"), Today: !now.Before(begin) && now.Before(end), Past: !now.Before(end)}
	if begin.Day() == 1 || d.Today {
		d.Label = begin.Format("2 Jan")
	}
	for _, t := range slices.Backward(runs) {
		if at := t.ScheduledAt; !at.IsZero() && !at.Before(begin) && at.Before(end) {
			shown := calendarRun{Look: ui.StateOf(t.State, t.Skipped), Time: clockTime(at.In(begin.Location())), RunID: t.RunID, Count: 1}
			if t.Missed != nil {
				shown.Count = t.Missed.Count
			}
			d.Runs = append(d.Runs, shown)
		}
	}
	if len(d.Runs) > dayShown {
		d.Runs = d.Runs[len(d.Runs)-dayShown:]
	}
	at := next(begin.Add(-1))
	for n := 0; !at.IsZero() && at.Before(end); n++ {
		if n == dayLimit {
			d.Many = true
			break
		}
		if n < dayShown {
			d.Times = append(d.Times, clockTime(at.In(begin.Location())))
		} else {
			d.More++
		}
		at = next(at)
	}
	if change, before, after, ok := changeAfter(begin); ok && change.Before(end) {
		d.Change = "clock: " + clockTime(before) + " → " + clockTime(after)
	}
	return d
}

// clockTime returns the time of day, with seconds if they are not 0.
func clockTime(at time.Time) string {
	if at.Second() != 0 {
		return at.Format("15:04:05")
	}
	return at.Format("15:04")
}

// changeAfter returns the first change of the clock after a time, in its zone, with the local
// times before and after it. ok is false if there is no further change.
func changeAfter(at time.Time) (change, before, after time.Time, ok bool) {
	for range 4 { // a zone can change its name without its offset
		_, end := at.ZoneBounds()
		if end.IsZero() {
			return change, before, after, false
		}
		_, old := at.Zone()
		_, changed := end.In(at.Location()).Zone()
		if old != changed {
			return end, end.UTC().Add(time.Duration(old) * time.Second), end.UTC().Add(time.Duration(changed) * time.Second), true
		}
		at = end.In(at.Location())
	}
	return change, before, after, false
}

// changesOf returns the next two changes of the clock, with the firings around them.
func changesOf(next func(time.Time) time.Time, now time.Time, zone *time.Location) (found []clockChange) {
	at := now.In(zone)
	for range 2 {
		change, before, after, ok := changeAfter(at)
		if !ok {
			return found
		}
		at = change.In(zone)
		c := clockChange{Day: at.Format("Monday, 2 January 2006"), Text: fmt.Sprintf("%s becomes %s", clockTime(before), clockTime(after))}
		day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, zone)
		end := time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, zone)
		for firing := next(day.Add(-1)); !firing.IsZero() && firing.Before(end); firing = next(firing) {
			if len(c.Firings) == 2*dayShown {
				c.Firings = append(c.Firings, "…")
				break
			}
			text := firing.In(zone).Format("15:04:05 MST")
			if firing.Equal(change) && after.After(before) {
				text += ", the first time after the skipped hour"
			}
			c.Firings = append(c.Firings, text)
		}
		found = append(found, c)
	}
	return found
}

// outageOf simulates the outage of the query; nil without one.
func outageOf(v *page.Visit, j api.JobAnswer, data *calendarData) (*outage, error) {
	query := v.Request.URL.Query()
	if query.Get("from") == "" && query.Get("to") == "" {
		return nil, nil //nolint:nilnil // nothing was asked
	}
	from, err := time.Parse(ui.FormTime, query.Get("from"))
	if err != nil {
		return nil, fault.Invalid("from", "malformed time, want one such as 2027-03-01T08:00")
	}
	to, err := time.Parse(ui.FormTime, query.Get("to"))
	if err != nil {
		return nil, fault.Invalid("to", "malformed time, want one such as 2027-03-01T08:00")
	}
	if !from.Before(to) || to.Sub(from) > longestOutage {
		return nil, fault.Invalid("to", "%s, want a time after the begin, at most 31 days later", to.Format(ui.FormTime))
	}
	if far := 10 * 366 * 24 * time.Hour; from.Sub(v.Now()).Abs() > far {
		return nil, fault.Invalid("from", "%s, want a time within ten years", from.Format(ui.FormTime))
	}
	data.From, data.To = from.Format(ui.FormTime), to.Format(ui.FormTime)
	found := &outage{From: from, To: to}
	down := job.Outage{From: from, To: to}
	for _, f := range job.Simulate(j.Definition, phase(j, from), to.Add(24*time.Hour), simulated, down) {
		shown := outageFiring{SimulatedFiring: f, State: ui.Look{Word: "Runs", Class: "good", Icon: "play"}, Late: f.FiredAt.Sub(f.ScheduledAt)}
		switch f.Decision {
		case job.DecisionSkip:
			shown.State = ui.Look{Word: "Skipped", Class: "off", Icon: "skip"}
		case job.DecisionDepends:
			shown.State = ui.Look{Word: "Depends", Class: "wait", Icon: "check-list"}
		}
		found.Firings = append(found.Firings, shown)
		if !f.ScheduledAt.Before(to) && len(found.Firings) >= dayShown {
			break
		}
	}
	return found, nil
}

// phase returns a time shortly before from at which an interval of the job ended. An interval
// counts from the change of the schedule, which the API does not return.
func phase(j api.JobAnswer, from time.Time) time.Time {
	parts := strings.Fields(j.Schedule)
	if len(parts) != 2 || !strings.EqualFold(parts[0], "@every") || j.NextAt.IsZero() {
		return from.Add(-time.Second)
	}
	every, err := time.ParseDuration(parts[1])
	if err != nil || every <= 0 {
		return from.Add(-time.Second)
	}
	since := j.NextAt.Sub(from) % every
	if since <= 0 {
		since += every
	}
	return from.Add(since - every)
}
