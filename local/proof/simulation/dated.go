package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/calendar"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// dates is the drawn job of a world of several days.
type dates struct {
	// zones change their clocks in the first days; nil for none.
	zones []string
	// outputs is how long outputs are kept, and newest how many of the newest runs are.
	outputs time.Duration
	newest  int
	// named are all times of the schedules that the owner sent.
	named map[int64]bool
	// backfills are the backfills by name. stopped are the runs whose cancel was acknowledged.
	backfills map[string]*backfill
	// pinned are the runs whose pin was acknowledged, until their unpinning is requested.
	pinned map[string]bool
	// gone are the runs whose output was seen to be deleted.
	gone   map[string]bool
	counts DatedCounts
}

// DatedCounts counts what happened in a world of several days: firings of calendars, runs of
// backfills and the cancelled ones, messages, deleted outputs, kept ones, and pins that came too late.
type DatedCounts struct{ Firings, Backfilled, Stopped, Notices, Deleted, Kept, Late int }

// beginning is the day on which a world begins, with the zones that change their clocks soon.
type beginning struct {
	day   string
	zones []string
}

// changing are days before changes of the clocks of zones, and before the ends of months.
var changing = []beginning{
	{"2026-11-27", nil},
	{"2026-12-29", nil},
	{"2027-02-25", nil},
	{"2027-03-12", []string{"America/New_York", "America/St_Johns"}},
	{"2027-03-26", []string{"Europe/Berlin"}},
	{"2027-04-02", []string{"Australia/Lord_Howe", "Pacific/Auckland"}},
	{"2027-09-24", []string{"Pacific/Auckland"}},
	{"2027-10-01", []string{"Australia/Lord_Howe", "Australia/Sydney"}},
	{"2027-10-29", []string{"Europe/Berlin"}},
	{"2027-11-05", []string{"America/New_York", "America/St_Johns"}},
}

// autumnal reports whether the world has a repeated hour: the times of its schedules are those of
// the repeated hours, and days of a weekday with its number.
func (w *world) autumnal() bool { return w.Dated() && w.Seed%400 >= 300 }

// drawDated draws the day at which the world begins and what its job keeps.
func (w *world) drawDated() {
	begins := changing
	if w.autumnal() {
		begins = []beginning{changing[5], changing[8], changing[9]} // the clocks go back
	}
	begin := begins[w.Random.IntN(len(begins))]
	day, err := time.Parse(time.DateOnly, begin.day)
	w.Broken = err
	w.Time.Now = day.Add(w.UpTo(calendar.Day)).Truncate(time.Second)
	w.Requests, w.horizon = 0, w.Between(3*calendar.Day, 6*calendar.Day)
	w.jobIDs = []string{"job-1"}
	w.Config.SweepInterval = 10 * time.Minute
	if w.OnAWS() {
		w.Config.SweepInterval = 30 * time.Minute
	}
	w.Config.MaxMachines = 1 + w.Random.IntN(3)
	w.Config.Policy.QueueTimeout = 20 * calendar.Day
	w.OutagesFor = w.horizon
	w.dates = &dates{
		zones:   begin.zones,
		outputs: w.Between(time.Hour, 2*calendar.Day), newest: w.Random.IntN(4), named: map[int64]bool{}, backfills: map[string]*backfill{},
		pinned: map[string]bool{}, gone: map[string]bool{},
	}
	if w.PinsLate() {
		w.dates.newest = 0 // those among the newest have no expiry
		w.Plan.NeverStart, w.Plan.NoCapacity, w.Plan.Lost, w.Plan.Stuck, w.Plan.Cancels, w.Plan.Aborts = 0, 0, 0, 0, 0, 0
	}
}

// datedFor is how long the job of a world of several days fires; 0 in other worlds.
func (w *world) datedFor() time.Duration {
	if w.dates == nil {
		return 0
	}
	return w.horizon
}

// drawZone draws a zone: mostly one that changes its clocks, if there is one.
func (w *world) drawZone() string {
	zones := w.dates.zones
	if len(zones) == 0 || !w.autumnal() && w.Chance(0.2) {
		zones = []string{"", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Sydney"}
	}
	return zones[w.Random.IntN(len(zones))]
}

// drawDatedJob adds two to four schedules with their limits and calendars to the definition, what
// is kept, and messages.
func (w *world) drawDatedJob(d map[string]any) {
	name := w.drawZone()
	zone, err := time.LoadLocation(name)
	if err != nil {
		w.Broken = err
		return
	}
	var rules []calendar.Rule
	var texts []string
	for len(rules) == 0 || w.schedules[scheduleKey{strings.Join(texts, "; "), name}].list != nil {
		rules, texts = nil, nil
		for i := range 2 + w.Random.IntN(3) {
			draw := calendar.Draw
			if w.autumnal() {
				draw = calendar.DrawRepeated
			}
			rules = append(rules, draw(w.Random, w.Time.Now, i == 0))
			texts = append(texts, rules[i].Text())
		}
	}
	d["schedules"] = texts
	if name != "" {
		d["timeZone"] = name
	}
	off := w.drawCalendars(d)
	list := calendar.Times(rules, off, zone, w.Time.Now.Add(-15*calendar.Day), 45)
	begin, end := w.drawBounds(d, zone)
	list = slices.DeleteFunc(list, func(t time.Time) bool { return t.Before(begin) || !end.IsZero() && !t.Before(end) })
	for _, t := range list {
		w.dates.named[t.Unix()] = true
	}
	w.schedules[scheduleKey{strings.Join(texts, "; "), name}] = nominal{list: append([]time.Time{}, list...)}
	constraints := map[string]any{"maxExpectedRunTime": max(w.Config.Policy.TimeLimit/4, time.Second).String()}
	w.drawMissed(d, constraints)
	if w.Chance(0.3) {
		constraints["maxConcurrentRuns"] = 1 + w.Random.IntN(2)
	}
	if w.Chance(0.5) {
		constraints["catchUpWindow"] = "2h"
	}
	d["constraints"], d["output"] = constraints, map[string]any{"path": "report.xml"}
	d["retryConfig"] = map[string]any{"maxRetries": w.Random.IntN(3), "initialDelay": "5s"}
	if w.Chance(0.5) {
		d["deadline"] = w.Between(time.Minute, 2*w.Longest).String()
	}
	kept := map[string]any{"outputs": w.dates.outputs.String(), "logs": "960h", "records": "1440h"}
	if w.dates.newest > 0 {
		kept["newest"] = w.dates.newest
	}
	d["retention"], d["actions"] = kept, w.drawNotices()
}

// drawCalendars adds up to two calendars to the definition, and returns their dates.
func (w *world) drawCalendars(d map[string]any) calendar.OffDates {
	off := calendar.OffDates{}
	var calendars []map[string]any
	for i := range w.Random.IntN(3) {
		how := []string{"skip", "next_day", "previous_day", "next_weekday", "previous_weekday"}[w.Random.IntN(5)]
		var listed []string
		for range 1 + w.Random.IntN(6) {
			date := w.Time.Now.Truncate(calendar.Day).AddDate(0, 0, w.Random.IntN(14)-7)
			listed = append(listed, date.Format(time.DateOnly))
			if _, also := off[date]; !also {
				off[date] = how
			}
		}
		calendars = append(calendars, map[string]any{"name": fmt.Sprintf("calendar-%d", i+1), "dates": listed, "firings": how})
	}
	if calendars != nil {
		d["calendars"] = calendars
	}
	return off
}

// drawBounds adds limits of the schedule to the definition: a date, or a time. The end is zero
// without one.
func (w *world) drawBounds(d map[string]any, zone *time.Location) (begin, end time.Time) {
	draw := func(field string, at time.Time) time.Time {
		if date := at.Truncate(calendar.Day); w.Chance(0.5) {
			d[field] = date.Format(time.DateOnly)
			return calendar.Instant(date, zone)
		}
		d[field] = at.Truncate(time.Second).Format(time.RFC3339)
		return at.Truncate(time.Second)
	}
	if w.Chance(0.3) {
		begin = draw("startAt", w.Time.Now.Add(w.UpTo(w.horizon/2)-w.horizon/4))
	}
	if w.Chance(0.4) {
		end = draw("endAt", w.Time.Now.Add(w.horizon/3+w.UpTo(w.horizon/2)))
	}
	return begin, end
}

// endDated removes the schedule of the job.
const endDated = `{"schedules":null,"calendars":null,"timeZone":null,"startAt":null,"endAt":null,"missed":null,"startingDeadline":null,"constraints":{"catchUp":null}}`

// ownDated simulates the owner of the job, and those who backfill it, pin its runs and download
// their outputs.
func (w *world) ownDated() {
	id, until := w.jobIDs[0], w.Time.Now.Add(w.horizon)
	w.putJob(id)
	for i := 0; w.Time.Now.Before(until); i++ {
		w.Time.Sleep(min(w.UpTo(w.horizon/6), until.Sub(w.Time.Now)+time.Second))
		switch w.Random.IntN(12) {
		case 0:
			w.putJob(id)
		case 1:
			w.Persist("pause "+id, func(ctx context.Context) error { return w.pauseJob(ctx, id, true) })
			w.Time.Sleep(w.UpTo(6 * time.Hour))
			w.Persist("resume "+id, func(ctx context.Context) error { return w.pauseJob(ctx, id, false) })
		case 2, 3, 4, 5:
			w.beginBackfill(id, i)
		case 6, 7:
			w.pinRun()
		case 8, 9:
			w.downloadRun()
		default:
			w.runJob(id)
		}
	}
	w.Persist("end of the schedule of "+id, func(ctx context.Context) error {
		_, err := w.System.Jobs.Patch(ctx, harness.Client, id, []byte(endDated), change.Precondition{})
		return err
	})
	for range 4 { // outputs expire meanwhile, and are checked once a day
		w.Time.Sleep((w.dates.outputs + 4*calendar.Day) / 4)
		w.downloadRun()
	}
	w.ownersDone++
}

// checkDated checks changed runs of the job.
func (w *world) checkDated(changed []*run.Run) {
	if w.dates == nil {
		return
	}
	for _, r := range changed {
		w.checkBackfilled(r)
		w.checkKept(r)
	}
	w.checkParallel()
}

// checkDatedEnds checks the job at the end.
func (w *world) checkDatedEnds() {
	if w.dates == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.dates.backfills)) {
		w.checkBackfill(name, w.dates.backfills[name])
	}
	for _, n := range w.Hooks.Notices {
		w.dates.counts.Notices += min(n.Taken, 1)
	}
	for _, r := range w.Records.Ordered {
		w.checkKeptEnd(r)
		switch {
		case r.RetryOf != "":
		case r.Trigger == run.TriggerBackfill:
			w.dates.counts.Backfilled++
		case !requestedRun(r):
			w.dates.counts.Firings++
		}
	}
}
