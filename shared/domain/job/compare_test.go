package job_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/cronexpr"
	netresearch "github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"
)

// others are the parsers to compare firings with.
var others = map[string]func(text string) (next func(after time.Time) time.Time, err error){
	"robfig": func(text string) (func(time.Time) time.Time, error) {
		s, err := robfig.ParseStandard(text)
		if err != nil {
			return nil, err
		}
		return s.Next, nil
	},
	"netresearch": func(text string) (func(time.Time) time.Time, error) {
		s, err := netresearch.ParseStandard(text)
		if err != nil {
			return nil, err
		}
		return s.Next, nil
	},
	"hashicorp": func(text string) (func(time.Time) time.Time, error) {
		s, err := cronexpr.Parse(text)
		if err != nil {
			return nil, err
		}
		return s.Next, nil
	},
}

// randomCron returns an expression that all parsers interpret in the same way: no star with a
// step in the day fields, not both day fields, no step beyond its range.
func randomCron(random *rand.Rand) string {
	var fields []string
	for i, span := range [][2]int{{0, 59}, {0, 23}, {1, 28}, {1, 12}, {0, 6}} {
		value := func() int { return span[0] + random.IntN(span[1]-span[0]+1) }
		low := value()
		high := low + random.IntN(span[1]-low+1)
		choice := random.IntN(6)
		dayField := i == 2 || i == 4
		switch {
		case choice <= 1 || dayField && choice == 2 || i == 4 && fields[2] != "*":
			fields = append(fields, "*")
		case choice == 2:
			fields = append(fields, fmt.Sprintf("*/%d", 1+random.IntN(11)))
		case choice == 3 && high-low > 4:
			fields = append(fields, fmt.Sprintf("%d-%d/%d", low, high, 1+random.IntN(5)))
		case choice == 4 && high > low:
			fields = append(fields, fmt.Sprintf("%d,%d-%d", value(), low, high))
		default:
			fields = append(fields, fmt.Sprint(low))
		}
	}
	return strings.Join(fields, " ")
}

// TestDaysOfTheMonthAgree compares the firings of expressions with L, W and #, and of seconds,
// with those of cronexpr, whose seventh field is a year.
func TestDaysOfTheMonthAgree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 9)) //nolint:gosec // a repeatable test
	for range 300 {
		day := fmt.Sprintf([]string{"L * *", "LW * *", "%[1]dW * *", "* * %[2]d#%[3]d", "* * %[2]dL"}[random.IntN(5)], 1+random.IntN(28), random.IntN(7), 1+random.IntN(5))
		day, _, _ = strings.Cut(day, "%!") // unused arguments
		text := fmt.Sprintf("%d %d %d %s", random.IntN(60), random.IntN(60), random.IntN(24), day)
		other, err := cronexpr.Parse(text + " *")
		if err != nil {
			t.Fatalf("%s: cronexpr refuses it: %v", text, err)
		}
		s, after := parse(t, text, ""), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 24 {
			got, _ := s.Next(after, time.Time{})
			if want := other.Next(after); !got.Equal(want) {
				t.Fatalf("%s: got %s after %s, want %s", text, got, after, want)
			}
			after = got
		}
	}
}

// TestOtherParsersAgree compares the firings of random expressions in UTC.
func TestOtherParsersAgree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a repeatable test
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 2000 {
		text := randomCron(random)
		s := parse(t, text, "")
		for name, parseOther := range others {
			next, err := parseOther(text)
			if err != nil {
				t.Fatalf("%s: %s refuses it: %v", text, name, err)
			}
			after := start.Add(time.Duration(random.Int64N(int64(2 * 365 * 24 * time.Hour))))
			for range 5 {
				got, ok := s.Next(after, time.Time{})
				if want := next(after); !ok || !got.Equal(want) {
					t.Errorf("%s after %s: got %s, want %s as %s has", text, after, got, want, name)
					break
				}
				after = got
			}
		}
	}
}

// TestDifferencesFromOtherParsers covers each kind of difference, with the parsers whose next
// firing differs.
func TestDifferencesFromOtherParsers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, text, zone, after string
		differ                  []string
	}{
		{"a starred day field with a step selects no day by itself", "0 0 */10 * MON", "", "2026-01-01T00:00:00Z", []string{"hashicorp", "robfig"}},
		{"either of two restricted day fields selects a day", "0 0 13 * FRI", "", "2026-01-01T00:00:00Z", []string{"netresearch"}},
		{"a step may be larger than its range", "22-23/4 * * * *", "", "2026-01-01T00:00:00Z", []string{"netresearch"}},
		{"a time of day that does not exist fires after the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"hashicorp", "netresearch", "robfig"}},
		{"a time of day that occurs twice fires once", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", []string{"hashicorp", "netresearch", "robfig"}},
		{"elapsed time fires in both passes of an hour", "30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", nil},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			after := at(t, c.after).In(zone)
			got, _ := parse(t, c.text, c.zone).Next(after, time.Time{})
			var differ []string
			for name, parseOther := range others {
				if next, err := parseOther(c.text); err != nil || !next(after).Equal(got) {
					differ = append(differ, name)
				}
			}
			slices.Sort(differ)
			if !slices.Equal(differ, c.differ) {
				t.Errorf("%s: got other firings from %v, want them from %v", c.text, differ, c.differ)
			}
		})
	}
}
