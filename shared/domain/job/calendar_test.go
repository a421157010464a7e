package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// TestTimesOfADefinition compares the firings of definitions with several schedules, limits and
// calendars.
func TestTimesOfADefinition(t *testing.T) {
	t.Parallel()
	const head = "id: x\nimage: x\n"
	holidays := func(schedule, firings string) string {
		return head + schedule + "\ncalendars: [{name: de, dates: [2026-12-25, 2026-12-26, 2027-01-01], firings: " + firings + "}]\n"
	}
	for _, c := range []struct {
		name, document, after string
		want                  []string
	}{
		{"several", head + "schedules: [0 2 * * MON, 0 6 * * MON, '@at 2026-12-07T04:00:00Z', 0 6 * * 1]\n", "2026-12-06T00:00:00Z", []string{"2026-12-07T02:00:00Z", "2026-12-07T04:00:00Z", "2026-12-07T06:00:00Z", "2026-12-14T02:00:00Z"}},
		{"start and end", head + "schedule: 0 0 * * *\nstartAt: 2026-12-24\nendAt: 2026-12-26T00:00:00Z\n", "2026-12-01T00:00:00Z", []string{"2026-12-24T00:00:00Z", "2026-12-25T00:00:00Z", ""}},
		{"dates in a zone", head + "schedule: 30 0 * * *\ntimeZone: Europe/Berlin\nstartAt: 2026-12-24\nendAt: 2026-12-25\n", "2026-12-01T00:00:00Z", []string{"2026-12-23T23:30:00Z", ""}},
		{"interval from a start", head + "schedule: '@every 6h'\nstartAt: 2026-12-24T01:00:00Z\nendAt: 2026-12-24T14:00:00Z\n", "2026-12-01T00:00:00Z", []string{"2026-12-24T07:00:00Z", "2026-12-24T13:00:00Z", ""}},
		{"skip", holidays("schedule: 0 3 * * MON-FRI", "skip"), "2026-12-24T03:00:00Z", []string{"2026-12-28T03:00:00Z", "2026-12-29T03:00:00Z", "2026-12-30T03:00:00Z", "2026-12-31T03:00:00Z", "2027-01-04T03:00:00Z"}},
		{"next day", holidays("schedule: 0 3 25 12 *", "next_day"), "2026-12-01T00:00:00Z", []string{"2026-12-27T03:00:00Z", "2027-12-25T03:00:00Z"}},
		{"previous day", holidays("schedule: 0 3 26 12 *", "previous_day"), "2026-12-01T00:00:00Z", []string{"2026-12-24T03:00:00Z", "2027-12-26T03:00:00Z"}},
		{"next weekday", holidays("schedule: 0 3,5 25 12 *", "next_weekday"), "2026-12-01T00:00:00Z", []string{"2026-12-28T03:00:00Z", "2026-12-28T05:00:00Z", "2027-12-25T03:00:00Z"}},
		{"previous weekday of a new year", holidays("schedule: 0 3 1 1 *", "previous_weekday"), "2026-02-01T00:00:00Z", []string{"2026-12-31T03:00:00Z", "2028-01-01T03:00:00Z"}},
		{"a moved time is one of another day", holidays("schedule: 0 3 25,28 12 *", "next_weekday"), "2026-12-01T00:00:00Z", []string{"2026-12-28T03:00:00Z", "2027-12-25T03:00:00Z"}},
		{"between moved times", holidays("schedule: 0 3,5 25,28 12 *", "next_weekday"), "2026-12-28T04:00:00Z", []string{"2026-12-28T05:00:00Z", "2027-12-25T03:00:00Z"}},
		{"date in a zone", head + "schedule: 30 0 * * *\ntimeZone: Europe/Berlin\ncalendars: [{name: de, dates: [2026-12-25]}]\n", "2026-12-23T12:00:00Z", []string{"2026-12-23T23:30:00Z", "2026-12-25T23:30:00Z"}},
		{"moved into a gap", head + "schedule: 30 2 28 3 *\ntimeZone: Europe/Berlin\ncalendars: [{name: x, dates: [2026-03-28], firings: next_day}]\n", "2026-03-01T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2027-03-28T01:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, problems := job.Parse([]byte(c.document), nil)
			if len(problems) > 0 {
				t.Fatalf("got the problems %v, want none", problems)
			}
			s, ok := d.Times()
			if !ok {
				t.Fatal("got no schedule")
			}
			after := at(t, c.after)
			since := after
			for _, want := range c.want {
				next, ok := s.Next(after, since)
				if !ok {
					next = time.Time{}
				}
				if got := strings.TrimPrefix(next.Format(time.RFC3339), "0001-01-01T00:00:00Z"); got != want {
					t.Fatalf("got %q after %s, want %q", got, after.Format(time.RFC3339), want)
				}
				after = next
			}
		})
	}
}

func TestBadTimes(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"schedule: '@daily'\nschedules: ['@daily']":                                                       "schedules",
		"schedules: ['@every 1h', '@daily']":                                                              "schedules.0",
		"schedules: ['@daily', 'x']":                                                                      "schedules.1",
		"schedules: ['@at 2027-01-01T00:00:00Z']\ntimeZone: Europe/Berlin":                                "timeZone",
		"schedules: [" + strings.Repeat("'@daily',", 21) + "]":                                            "schedules",
		"startAt: 2027-01-01":                                                                             "startAt",
		"schedule: '@daily'\nstartAt: tomorrow":                                                           "startAt",
		"schedule: '@daily'\nstartAt: 2027-01-01\nendAt: 2027-01-01":                                      "endAt",
		"schedule: '@every 1h'\ncalendars: [{name: x, dates: [2027-01-01]}]":                              "calendars",
		"schedule: '@daily'\ncalendars: [{name: x, dates: []}]":                                           "calendars.0.dates",
		"schedule: '@daily'\ncalendars: [{name: x, dates: [2027-02-29]}]":                                 "calendars.0.dates.0",
		"schedule: '@daily'\ncalendars: [{name: x, dates: [2027-02-28], firings: later}]":                 "calendars.0.firings",
		"schedule: '@daily'\ncalendars: [{name: x, dates: [2027-01-01]}, {name: x, dates: [2027-01-02]}]": "calendars.1.name",
		"schedule: '@daily'\ncalendars: [{dates: [2027-01-01]}]":                                          "calendars.0.name",
	} {
		_, problems := job.Parse([]byte("id: x\nimage: x\n"+document), nil)
		if len(problems) != 1 || problems[0].Field != want {
			t.Errorf("%s: got %v, want a problem of %s", document, problems, want)
		}
	}
}

func TestChangedCalendarIsANewSchedule(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-12-01T00:00:00Z")
	d := job.Definition{ID: "x", Image: "x", Schedule: "0 3 * * *"}
	j := job.Create("t", d, "", now)
	d.Calendars = []job.Calendar{{Name: "x", Dates: []string{"2026-12-01"}}}
	if j = j.Apply(d, "", now); !j.NextAt.Equal(at(t, "2026-12-02T03:00:00Z")) {
		t.Errorf("got the next firing %s, want that of the day after the date of the calendar", j.NextAt)
	}
}
