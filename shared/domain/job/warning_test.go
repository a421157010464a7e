package job_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

func TestStepsBeyondTheirRangeAreWarnings(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string][]string{
		"*/90 * * * *":       {`schedule: position 1: the step of "*/90" is larger than the range 0 to 59 of the minute, so that it selects 0 alone`},
		"0 */25 * * *":       {`schedule: position 3: the step of "*/25" is larger than the range 0 to 23 of the hour, so that it selects 0 alone`},
		"0 0 */31 * *":       {`schedule: position 5: the step of "*/31" is larger than the range 1 to 31 of the day of month, so that it selects 1 alone`},
		"5,10-20/11 0 1 * *": {`schedule: position 3: the step of "10-20/11" is larger than the range 10 to 20 of the minute, so that it selects 10 alone`},
		" */60 0 * * MON-SUN/7": {
			`schedule: position 2: the step of "*/60" is larger than the range 0 to 59 of the minute, so that it selects 0 alone`,
			`schedule: position 13: the step of "MON-SUN/7" is larger than the range 1 to 7 of the day of week, so that it selects 1 alone`,
		},
		"*/59 */23 */30 */11 */6": nil, "0 2 * * MON-FRI": nil, "@daily": nil, "@every 90m": nil, "": nil, "*/7 5-5/1 * * *": nil,
	} {
		if diff := cmp.Diff(want, job.Definition{Schedule: schedule}.Warnings()); diff != "" {
			t.Errorf("%q: want -, got +\n%s", schedule, diff)
		}
	}
}

func TestPartsWithoutAnEffectAreWarnings(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"schedules: []": "schedules: an empty list is no schedule",
		"after: []":     "after: an empty list names no job",
		"schedules: ['0 2 * * *', '0 3 * * *', '0 2 * * *']":                          "schedules.2: the same as schedules.0, and each time fires once",
		"schedule: '0 2 24 12 *'\nstartAt: 2026-12-25\nendAt: 2026-12-26":             "schedule: no time from startAt to endAt",
		"schedule: '0 2 24 12 *'\nstartAt: 2026-12-24T02:00:00Z\nendAt: 2026-12-25":   "",
		"deadline: 10m\nconstraints: {maxAllowedRunTime: 20m}":                        "constraints.maxAllowedRunTime: 20m is never exceeded, because the deadline of all attempts is 10m",
		"deadline: 10m\nconstraints: {maxExpectedRunTime: 10m}":                       "constraints.maxExpectedRunTime: 10m is never exceeded, because the deadline of all attempts is 10m",
		"deadline: 10m\nconstraints: {maxExpectedRunTime: 1m, maxAllowedRunTime: 9m}": "",
	} {
		d, problems := job.Parse([]byte("id: a\nimage: b\n"+document+"\n"), nil)
		if got := strings.Join(d.Warnings(), "\n"); got != want || len(problems) > 0 {
			t.Errorf("%s: got %q and %v, want %q", document, got, problems, want)
		}
	}
}

func TestStarsInsideOfFiltersAreWarnings(t *testing.T) {
	t.Parallel()
	d := job.Definition{Sensor: &sensor.Settings{CloudEvent: &sensor.CloudEvents{Types: []string{"a.*", "*a"}, Sources: []string{"/*/b*"}}}}
	want := []string{
		`sensor.cloudEvent.types.1: only a * at the end of "*a" is a wildcard`,
		`sensor.cloudEvent.sources.0: only a * at the end of "/*/b*" is a wildcard`,
	}
	if diff := cmp.Diff(want, d.Warnings()); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestZoneInAScheduleNamesTimeZone(t *testing.T) {
	t.Parallel()
	for schedule, zone := range map[string]string{
		"CRON_TZ=Europe/Berlin 30 4 * * *": "timeZone: Europe/Berlin", "TZ=UTC @daily": "timeZone: UTC", "  cron_tz=Asia/Tokyo 0 0 * * *": "timeZone: Asia/Tokyo",
		"TZ= 0 0 * * *": "timeZone", "CRON_TZ=Europe/Berlin": "timeZone: Europe/Berlin",
	} {
		_, err := job.ParseSchedule(schedule, "")
		if err == nil || !strings.Contains(err.Error(), zone) {
			t.Errorf("%q: got %v, want one that names %s", schedule, err, zone)
		}
	}
}
