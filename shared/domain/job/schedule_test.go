package job_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

func parse(t *testing.T, text, zone string) job.Schedule {
	t.Helper()
	s, err := job.ParseSchedule(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestFirings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schedule, zone, after string
		want                        []string
	}{
		{"every quarter of an hour", "*/15 * * * *", "", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"}},
		{"after is exclusive", "0 2 * * *", "", "2026-01-01T02:00:00Z", []string{"2026-01-02T02:00:00Z"}},
		{"a nanosecond before", "0 2 * * *", "", "2026-01-01T01:59:59.999999999Z", []string{"2026-01-01T02:00:00Z"}},
		{"names and ranges", "0 9 * JAN-MAR,DEC MON-FRI", "", "2026-03-30T10:00:00Z", []string{"2026-03-31T09:00:00Z", "2026-12-01T09:00:00Z"}},
		{"either day field", "0 0 13 * FRI", "", "2026-02-01T00:00:00Z", []string{"2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z", "2026-02-27T00:00:00Z", "2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z"}},
		{"a starred day field restricts", "0 0 */2 * MON", "", "2026-02-01T00:00:00Z", []string{"2026-02-09T00:00:00Z", "2026-02-23T00:00:00Z"}},
		{"0 and 7 are Sunday", "0 0 * * 0,7", "", "2026-02-01T00:00:00Z", []string{"2026-02-08T00:00:00Z"}},
		{"a range to Sunday", "0 0 * * SAT-SUN", "", "2026-02-01T00:00:00Z", []string{"2026-02-07T00:00:00Z", "2026-02-08T00:00:00Z"}},
		{"leap day", "0 0 29 2 *", "", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"leap day over 2100", "0 0 29 2 *", "", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"last day", "0 0 L * *", "", "2028-01-31T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"}},
		{"before the last day", "0 0 L-3 FEB *", "", "2026-01-31T00:00:00Z", []string{"2026-02-25T00:00:00Z", "2027-02-25T00:00:00Z", "2028-02-26T00:00:00Z"}},
		{"nearest weekday", "0 0 15W * *", "", "2026-01-31T00:00:00Z", []string{"2026-02-16T00:00:00Z", "2026-03-16T00:00:00Z", "2026-04-15T00:00:00Z"}},
		{"nearest weekday in the month", "0 0 1W,31W * *", "", "2026-07-31T00:00:00Z", []string{"2026-08-03T00:00:00Z", "2026-08-31T00:00:00Z", "2026-09-01T00:00:00Z", "2026-10-01T00:00:00Z", "2026-10-30T00:00:00Z", "2026-11-02T00:00:00Z"}},
		{"last weekday", "0 0 LW * *", "", "2026-01-01T00:00:00Z", []string{"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z", "2026-03-31T00:00:00Z"}},
		{"third Friday", "0 0 * * fri#3", "", "2026-01-01T00:00:00Z", []string{"2026-01-16T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"fifth Sunday", "0 0 * * 7#5", "", "2026-01-01T00:00:00Z", []string{"2026-03-29T00:00:00Z", "2026-05-31T00:00:00Z"}},
		{"last Friday and each Monday", "0 0 * * 5L,MON", "", "2026-01-26T00:00:00Z", []string{"2026-01-30T00:00:00Z", "2026-02-02T00:00:00Z"}},
		{"seconds", "15,45 59 23 31 12 *", "", "2026-01-01T00:00:00Z", []string{"2026-12-31T23:59:15Z", "2026-12-31T23:59:45Z", "2027-12-31T23:59:15Z"}},
		{"seconds and minutes", "*/30 */59 3 * * *", "", "2026-01-01T03:00:10Z", []string{"2026-01-01T03:00:30Z", "2026-01-01T03:59:00Z", "2026-01-01T03:59:30Z", "2026-01-02T03:00:00Z"}},
		{"interval", "@every 90m", "", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:37:00Z", "2026-01-01T02:07:00Z"}},
		{"once", "@at 2026-05-01T10:00:00+02:00", "", "2026-01-01T00:00:00Z", []string{"2026-05-01T08:00:00Z", ""}},

		{"time of day in a gap", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"two times in one gap", "0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"gap and its end", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"time of day that occurs twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"after the first of two", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"between the two", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"elapsed time in a repeated hour", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"elapsed time over a gap", "*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-30T00:00:00Z"}},
		{"skipped day", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", []string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},
		{"half an hour of daylight saving", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, after := parse(t, c.schedule, c.zone), at(t, c.after)
			since := after
			if c.name == "interval" {
				since = after.Add(-53 * time.Minute)
			}
			for _, want := range c.want {
				got, ok := s.Next(after, since)
				if !ok {
					if want != "" {
						t.Fatalf("got no firing after %s, want %s", after, want)
					}
					return
				}
				if got.Format(time.RFC3339) != want {
					t.Fatalf("got %s after %s, want %s", got.Format(time.RFC3339), after.Format(time.RFC3339), want)
				}
				after = got
			}
		})
	}
}

func TestBadSchedules(t *testing.T) {
	t.Parallel()
	for text, position := range map[string]int{
		"": 1, "0 2 * *": 8, "0 2 * * * * *": 13, "60 * * * *": 1, "0 24 * * *": 3, "0 0 0 * *": 5, "0 0 32 * *": 5, "0 0 * 13 *": 7,
		"0 0 * * 8": 9, "0 0 ? * *": 5, "L 0 * * *": 1, "0 0 * L *": 7, "0 0 L-0 * *": 7, "0 0 L-31 * *": 7, "0 0 L-x * *": 7, "0 0 32W * *": 5, "0 0 W * *": 5, "0 0 5-9W * *": 5, "0 0 L-30 2 *": 5,
		"0 0 * * L": 9, "0 0 * * 8L": 9, "0 0 * * 5#6": 11, "0 0 * * 5#0": 11, "0 0 * * 5#": 11, "0 0 * * #3": 9, "0 0 * * 5#+3": 11, "60 0 0 * * *": 1, "H 0 * * *": 1, "5/15 * * * *": 2,
		"*/0 * * * *": 3, "*/-1 * * * *": 3, "*/x * * * *": 3, "10-5 * * * *": 1, "0 0 31 2 *": 5, "0 0 30,31 FEB *": 5, "0 0 31 4,6,9,11 *": 5,
		"1,,2 * * * *": 3, "+1 * * * *": 1, "1-+5 * * * *": 3, "0 0 * MONDAY *": 7, "@reboot": 1, "@daily 5": 8, "@every": 1, "@every 1500ms": 8,
		"@every 0s": 8, "@every -5m": 8, "@every 9000h": 8, "@at tomorrow": 5, "@at 2026-05-01T10:00:00.5Z": 5, "@at 2026-05-01T10:00:00": 5, "0 0 1 1 * # comment": 13, "**": 3, "*5 * * * *": 1,
	} {
		_, err := job.ParseSchedule(text, "Europe/Berlin")
		if problem, ok := errors.AsType[*job.SyntaxError](err); !ok || problem.Position != position {
			t.Errorf("%q: got %v, want a problem at position %d", text, err, position)
		}
	}
	for _, zone := range []string{"Local", "Europe/Atlantis", "../../etc/passwd", "CEST", "localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin"} {
		if _, err := job.ParseSchedule("@daily", zone); err == nil {
			t.Errorf("zone %q: got no error, want one", zone)
		}
	}
}
