package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// JobReader reads and checks the job file of a name, relative to the scenario.
type JobReader func(name string) (job.Definition, error)

// Read reads a scenario from a document in YAML or JSON. The error has all problems, one per
// line, each with the line and the field.
func Read(name string, text []byte, read JobReader) (Scenario, error) {
	s := Scenario{Name: name}
	c := &check{}
	s.lines, c.found = job.Decode(text, &s.File)
	for i, p := range c.found {
		c.found[i].Problem = unknownPart(p)
	}
	if len(c.found) == 0 {
		s.check(c, read)
	}
	return s, c.err(s)
}

// mostDays limits the length of a play.
const mostDays = 92

// check collects problems.
type check struct{ found []job.Problem }

func (c *check) bad(field, format string, args ...any) {
	c.found = append(c.found, job.Problem{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// err returns the problems as an error; nil without problems.
func (c *check) err(s Scenario) error {
	if len(c.found) == 0 {
		return nil
	}
	for i, p := range c.found {
		if p.Line == 0 {
			c.found[i].Line = s.lines.LineOf(p.Field)
		}
	}
	slices.SortStableFunc(c.found, func(a, b job.Problem) int { return cmp.Compare(a.Line, b.Line) })
	lines := make([]string, len(c.found))
	for i, p := range c.found {
		if lines[i] = p.Problem; p.Field != "" {
			lines[i] = p.Field + ": " + p.Problem
		}
		lines[i] = fmt.Sprintf("%s:%d: %s", s.Name, p.Line, lines[i])
	}
	return errors.New(strings.Join(lines, "\n"))
}

// check checks the values of a decoded file and sets what is derived from it.
func (s *Scenario) check(c *check, read JobReader) {
	s.checkTimes(c)
	s.checkLimits(c)
	s.jobs = nil
	if len(s.File.Jobs) == 0 {
		c.bad("jobs", "no jobs, want at least one with file or job, and duration")
	}
	seen := map[string]string{}
	for i, setting := range s.File.Jobs {
		at := fmt.Sprintf("jobs.%d", i)
		planned := plannedJob{setting: setting}
		planned.perHour = c.setting(at, setting)
		var ok bool
		if planned.definition, ok = c.definition(at, setting, read); ok {
			id := planned.definition.ID
			if other, twice := seen[id]; twice {
				c.bad(at, "%q is the id of %s too, want another", id, other)
			}
			seen[id] = at
		}
		s.jobs = append(s.jobs, planned)
	}
	s.checkFaults(c)
	for i, p := range s.File.Prices {
		if at := fmt.Sprintf("prices.%d", i); p.CPUs < 1 || p.MemoryMB < 1 || p.PerSecond < 0 {
			c.bad(at, "malformed price, want cpus and memoryMB of at least 1, and perSecond in USD")
		}
	}
}

func (s *Scenario) checkTimes(c *check) {
	var err error
	if s.start, err = time.Parse(time.RFC3339, s.File.Start); err != nil {
		s.start, err = time.Parse(time.DateOnly, s.File.Start)
	}
	if err != nil {
		c.bad("start", "malformed time %q, want a date or a time of RFC 3339, such as 2027-03-01", s.File.Start)
	}
	s.start = s.start.UTC()
	if s.File.Days < 1 || s.File.Days > mostDays {
		c.bad("days", "%d is out of range, want 1 to %d", s.File.Days, mostDays)
	}
	if s.File.Seed != nil && *s.File.Seed < 0 {
		c.bad("seed", "%d is out of range, want 0 or more", *s.File.Seed)
	}
	c.duration("startTime", s.File.StartTime, 0, 50*time.Second)
}

func (s *Scenario) checkLimits(c *check) {
	l := s.File.Limits
	if l.Machines != nil && (*l.Machines < 0 || *l.Machines > limit.PoolSlots) {
		c.bad("limits.machines", "%d is out of range, want 0 to %d; 0 is no limit", *l.Machines, limit.PoolSlots)
	}
	if l.StartsPerSecond != nil && (*l.StartsPerSecond < 0.001 || *l.StartsPerSecond > 1000) {
		c.bad("limits.startsPerSecond", "%v is out of range, want 0.001 to 1000", *l.StartsPerSecond)
	}
	if l.Burst != nil && (*l.Burst < 1 || *l.Burst > 1000) {
		c.bad("limits.burst", "%d is out of range, want 1 to 1000", *l.Burst)
	}
}

// setting checks what is drawn for a job. It returns the rate of arrivals.
func (c *check) setting(at string, j Job) (perHour float64) {
	d := j.Duration
	switch {
	case d == Length{}:
		c.bad(at+".duration", "missing, want {fixed: 10m} or {median: 5m, p95: 20m}")
	case (d.Fixed != "") == (d.Median != "" || d.P95 != "") || (d.Median == "") != (d.P95 == ""):
		c.bad(at+".duration", "want either fixed, or median and p95")
	}
	const week = 7 * 24 * time.Hour
	c.duration(at+".duration.fixed", d.Fixed, 0, week)
	c.duration(at+".duration.median", d.Median, time.Millisecond, week)
	c.duration(at+".duration.p95", d.P95, time.Millisecond, week)
	if d.P95.Value() < d.Median.Value() {
		c.bad(at+".duration.p95", "%s is less than the median, want at least %s", d.P95, d.Median)
	}
	if f := j.Fails; f != nil {
		c.share(at+".fails.share", f.Share)
		if f.Code != nil && (*f.Code < 1 || *f.Code > 125) {
			c.bad(at+".fails.code", "%d is out of range, want 1 to 125", *f.Code)
		}
	}
	if j.Lost != nil {
		c.share(at+".lost", *j.Lost)
	}
	if j.Arrivals == "" {
		return 0
	}
	number, unit, _ := strings.Cut(j.Arrivals, "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	hours := map[string]float64{"minute": 1.0 / 60, "hour": 1, "day": 24}[strings.TrimSpace(unit)]
	if perHour = n / hours; err != nil || hours == 0 || !(n > 0) || perHour > 10_000 || math.IsNaN(perHour) {
		c.bad(at+".arrivals", "malformed rate %q, want a number for a minute, hour or day, such as 20/hour, at most 10000/hour", j.Arrivals)
		return 0
	}
	return perHour
}

func (c *check) share(field string, value float64) {
	if value < 0 || value > 1 {
		c.bad(field, "%v is out of range, want a share from 0 to 1", value)
	}
}

// duration checks a duration, which may be absent.
func (c *check) duration(field string, d job.Duration, least, most time.Duration) {
	if d == "" {
		return
	}
	if value, err := time.ParseDuration(string(d)); err != nil || value < least || value > most {
		c.bad(field, "malformed duration %q, want %s to %s, such as 90s or 1h30m", string(d), least, most)
	}
}

// definition returns the definition of a job. ok is false if it has problems.
func (c *check) definition(at string, j Job, read JobReader) (d job.Definition, ok bool) {
	before := len(c.found)
	switch {
	case (j.File == "") == (j.Job == nil):
		c.bad(at, "want either file, the name of a job file, or job, a definition")
		return d, false
	case j.Job != nil:
		d = *j.Job
		for _, p := range d.Validate(nil) {
			c.bad(join(at+".job", p.Field), "%s", p.Problem)
		}
		at += ".job"
	default:
		at += ".file"
		var err error
		if d, err = read(j.File); err != nil {
			c.bad(at, "%v", err)
			return d, false
		}
	}
	for _, p := range unmodelled(d) {
		if j.Job != nil {
			c.bad(join(at, p.Field), "%s", p.Problem)
		} else {
			c.bad(at, "%s: %s", p.Field, p.Problem)
		}
	}
	return d, len(c.found) == before
}

func join(path, name string) string {
	if name == "" {
		return path
	}
	return path + "." + name
}

func (s *Scenario) checkFaults(c *check) {
	s.faults = nil
	for i, f := range s.File.Faults {
		at := fmt.Sprintf("faults.%d", i)
		if !slices.Contains(faultTypes, f.Type) {
			c.bad(at+".type", "%q is not modelled, want one of %s", string(f.Type), listed())
			continue
		}
		one := span{Fault: f, from: s.start, to: s.End()}
		if f.At != "" {
			var err error
			// A fault after a play that --set has shortened has no effect.
			last := s.start.AddDate(0, 0, mostDays)
			if one.from, err = time.Parse(time.RFC3339, f.At); err != nil || one.from.Before(s.start) || !one.from.Before(last) {
				c.bad(at+".at", "malformed time %q, want a time of RFC 3339 from %s to %s", f.At, s.start.Format(time.RFC3339), last.Format(time.RFC3339))
				continue
			}
		}
		c.duration(at+".for", f.For, time.Second, mostDays*24*time.Hour)
		if f.For != "" {
			one.to = one.from.Add(f.For.Value())
		}
		c.checkFault(at, f)
		s.faults = append(s.faults, one)
	}
}

// checkFault checks the fields that only some faults have.
func (c *check) checkFault(at string, f Fault) {
	if f.Type != LostCallbacks && (f.At == "" || f.For == "") {
		c.bad(at, "want at and for, such as {type: %s, at: 2027-03-10T02:25:00Z, for: 10m}", f.Type)
	}
	switch {
	case f.Type == LostCallbacks && f.Share == nil:
		c.bad(at+".share", "missing, want the share of lost callbacks from 0 to 1")
	case f.Type == LostCallbacks:
		c.share(at+".share", *f.Share)
	case f.Share != nil:
		c.bad(at+".share", "no meaning with %s, want %s", f.Type, LostCallbacks)
	}
	switch value, err := time.ParseDuration(string(f.By)); {
	case f.Type != ClockJump && f.By != "":
		c.bad(at+".by", "no meaning with %s, want %s", f.Type, ClockJump)
	case f.Type == ClockJump && (err != nil || value == 0 || value.Abs() > 24*time.Hour):
		c.bad(at+".by", "malformed duration %q, want -24h to 24h without 0, such as 5m or -90s", string(f.By))
	}
}

// listed returns the kinds of faults as a text.
func listed() string {
	names := make([]string, len(faultTypes))
	for i, f := range faultTypes {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}
