package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Measure is a line of the answer: a figure of each result, side by side.
type Measure struct {
	// Of is a job, or "all jobs".
	Of, Name string
	// Values has a text for each result; "-" where a result lacks the job.
	Values []string
}

// AllJobs is Measure.Of of the figures of all jobs.
const AllJobs = "all jobs"

// Measures returns the figures of results, first those of all jobs. Figures that are zero in all
// results are left out, except the main ones.
func Measures(results ...Result) (found []Measure) {
	add := func(of, name string, main bool, value func(r Result) string) {
		m := Measure{Of: of, Name: name}
		zero := true
		for _, r := range results {
			text := value(r)
			zero = zero && (text == none || text == "0")
			m.Values = append(m.Values, text)
		}
		if main || !zero {
			found = append(found, m)
		}
	}
	for _, f := range wholeFigures {
		add(AllJobs, f.name, true, func(r Result) string { return f.of(r) })
	}
	for _, id := range jobIDs(results) {
		for _, f := range jobFigures {
			add(id, f.name, f.main, func(r Result) string {
				if i := slices.IndexFunc(r.Jobs, func(j JobResult) bool { return j.Job == id }); i >= 0 {
					return f.of(r.Jobs[i])
				}
				return none
			})
		}
	}
	return found
}

// none is the text of a figure that does not exist.
const none = "-"

var wholeFigures = []struct {
	name string
	of   func(r Result) string
}{
	{"limit of machines", func(r Result) string {
		if r.Limit == 0 {
			return "none"
		}
		return strconv.Itoa(r.Limit)
	}},
	{"runs", func(r Result) string { return strconv.Itoa(r.Whole.Runs) }},
	{"machines at most at once", func(r Result) string { return strconv.Itoa(r.Whole.MostMachines) }},
	{"machine hours", func(r Result) string { return fmt.Sprintf("%.1f", r.Whole.MachineHours) }},
	{"cost in USD", func(r Result) string { return fmt.Sprintf("%.2f", r.Whole.Cost) }},
	{"queued at most at once", func(r Result) string { return strconv.Itoa(r.Whole.MostQueued) }},
	{"wait: median, 95 %, longest", func(r Result) string { return r.Whole.Waits.String() }},
}

var jobFigures = []struct {
	name string
	main bool
	of   func(j JobResult) string
}{
	{"firings due", false, func(j JobResult) string { return strconv.Itoa(j.Due) }},
	{"firings started", false, func(j JobResult) string { return strconv.Itoa(j.Started) }},
	{"firings missed", false, func(j JobResult) string { return counted(j.Missed, j.MissedBy) }},
	{"runs on request", false, func(j JobResult) string { return strconv.Itoa(j.Arrivals) }},
	{"refused or skipped", false, func(j JobResult) string { return counted(sum(j.Refused), j.Refused) }},
	{"runs succeeded", true, func(j JobResult) string { return strconv.Itoa(j.Succeeded) }},
	{"runs failed", true, func(j JobResult) string { return counted(j.Failed, j.FailedBy) }},
	{"runs cancelled", false, func(j JobResult) string { return strconv.Itoa(j.Cancelled) }},
	{"runs under way at the end", false, func(j JobResult) string { return strconv.Itoa(j.Open) }},
	{"retries", false, func(j JobResult) string { return strconv.Itoa(j.Retries) }},
	{"attempts failed", false, func(j JobResult) string { return counted(sum(j.Failures), j.Failures) }},
	{"wait: median, 95 %, longest", true, func(j JobResult) string { return j.Waits.String() }},
	{"late: median, 95 %, longest", false, func(j JobResult) string { return j.Late.String() }},
	{"machine hours", true, func(j JobResult) string { return fmt.Sprintf("%.1f", j.MachineHours) }},
	{"cost in USD", true, func(j JobResult) string { return fmt.Sprintf("%.2f", j.Cost) }},
}

// String returns the three figures.
func (s Spread) String() string {
	if s.Count == 0 {
		return none
	}
	return strings.Join([]string{seconds(s.Median), seconds(s.P95), seconds(s.Longest)}, ", ")
}

// seconds formats a duration.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Minute:
		return strconv.FormatFloat(rounded(s, 10), 'f', -1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// counted returns a number with its parts.
func counted(n int, by map[string]int) string {
	if len(by) == 0 {
		return strconv.Itoa(n)
	}
	parts := make([]string, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d %s", by[name], name))
	}
	return fmt.Sprintf("%d: %s", n, strings.Join(parts, ", "))
}

func sum(by map[string]int) (n int) {
	for _, one := range by {
		n += one
	}
	return n
}

// jobIDs returns the jobs of all results.
func jobIDs(results []Result) (ids []string) {
	for _, r := range results {
		for _, j := range r.Jobs {
			if !slices.Contains(ids, j.Job) {
				ids = append(ids, j.Job)
			}
		}
	}
	return ids
}
