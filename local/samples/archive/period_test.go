package archive

import (
	"strings"
	"testing"
)

func TestPeriod(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text                         string
		dayEstimated, clockEstimated bool
		created, words               string
	}{
		"a day and its hours":       {"1971-10-21T08:20:00-05:00/1971-10-21T08:30:00-05:00", false, false, "1971-10-21", "October 21, 1971, 8:20 am to 8:30 am"},
		"late in the evening":       {"1973-06-04T23:40:00-05:00/1973-06-04T23:55:00-05:00", false, true, "1973-06-04", "June 4, 1973, at an unknown time between 11:40 pm and 11:55 pm"},
		"a moment":                  {"1971-10-21T17:42:00-05:00/1971-10-21T17:42:00-05:00", false, false, "1971-10-21", "October 21, 1971, 5:42 pm"},
		"an estimate over weeks":    {"1972-05-18T00:01:00-05:00/1972-06-06T23:49:00-05:00", true, true, "1972", "between May 18, 1972 and June 6, 1972"},
		"an estimate over years":    {"1971-12-30T00:01:00-05:00/1972-01-06T23:49:00-05:00", true, true, "1971", "between December 30, 1971 and January 6, 1972"},
		"an estimate within a day":  {"1972-05-18T00:01:00-05:00/1972-05-18T23:49:00-05:00", true, true, "1972-05-18", "May 18, 1972, at an unknown time between 12:01 am and 11:49 pm"},
		"days":                      {"1958-05-30/1958-07-04", false, false, "1958-05-30", "May 30, 1958 to July 4, 1958"},
		"an end before its start":   {"1958-05-30/1957-07-04", false, false, "1958-05-30", "May 30, 1958"},
		"a day in one piece":        {"19580530", false, false, "1958-05-30", "May 30, 1958"},
		"a month":                   {"1958-05", false, false, "1958", "May 1958"},
		"a year":                    {"1958/1960", false, false, "1958", "1958 to 1960"},
		"no time":                   {"about noon", false, false, "", ""},
		"a day that does not exist": {"1971-02-30", false, false, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, ok := ParsePeriod(tt.text)
			if ok != (tt.created != "") {
				t.Fatalf("ParsePeriod(%q): got %+v, %v", tt.text, p, ok)
			}
			p.DayEstimated, p.ClockEstimated = tt.dayEstimated, tt.clockEstimated
			if p.Created() != tt.created || p.Words() != tt.words {
				t.Errorf("got created %q in words %q", p.Created(), p.Words())
			}
		})
	}
}

func FuzzParsePeriod(f *testing.F) {
	f.Add("1971-10-21T08:20:00-05:00/1971-10-21T08:30:00-05:00")
	f.Add("October 21, 1971/1972")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := ParsePeriod(text)
		if ok && (len(p.Start) < 4 || p.End != "" && p.End < p.Start) {
			t.Fatalf("ParsePeriod(%q) = %+v", text, p)
		}
		p.DayEstimated = true
		if strings.Contains(p.Created(), "T") || strings.Contains(p.Words(), "T0") {
			t.Fatalf("%+v in words %q", p, p.Words())
		}
	})
}
