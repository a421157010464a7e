package explain_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/explain"
)

// work is a kind of run. Its run times have a lognormal distribution.
type work struct {
	class  string
	share  float64
	median time.Duration
	sigma  float64
	// alpha, if not 0, selects a Pareto distribution with that exponent and the median.
	alpha float64
}

func (w work) draw(random *rand.Rand) float64 {
	if w.alpha > 0 {
		return float64(w.median) * math.Pow(2*(1-random.Float64()), -1/w.alpha)
	}
	return float64(w.median) * math.Exp(w.sigma*random.NormFloat64())
}

// shape describes the load of a month.
type shape struct {
	slots int
	works []work
	// rate returns the number of runs per hour at a time.
	rate func(at time.Duration) float64
	// batch is the number of runs that arrive together every night.
	batch int
	// bursts is the mean number of bursts per day: 1 to 40 runs that arrive within a minute.
	bursts float64
	// slower multiplies the run times in the second half of the month.
	slower float64
}

const month = 30 * 24 * time.Hour

// months makes the test simulate every load for several months, until there are more queued
// runs.
var months = flag.Bool("months", false, "simulate all loads, each for months")

// quick are the loads that are simulated without -months: a pool that is always full, one that
// is empty every night, and runs that arrive together.
var quick = []string{"steady", "office hours", "nightly batch"}

func daily(at time.Duration) float64 { // from 0 at midnight to 1 at noon
	return (1 - math.Cos(2*math.Pi*at.Hours()/24)) / 2
}

var mixed = []work{
	{"export/mods", 0.7, 20 * time.Minute, 0.5, 0}, {"job/report", 0.2, 2 * time.Hour, 0.3, 0}, {"job/crawl", 0.1, 6 * time.Hour, 0.8, 0},
}

var short = []work{{"export/dc", 0.8, 10 * time.Minute, 0.5, 0}, {"job/import", 0.2, 40 * time.Minute, 0.4, 0}}

func longer(works []work, times int) []work {
	works = slices.Clone(works)
	for i := range works {
		works[i].median = time.Duration(times) * works[i].median
	}
	return works
}

func shapes() map[string]shape {
	rate := func(perHour float64) func(time.Duration) float64 {
		return func(time.Duration) float64 { return perHour }
	}
	return map[string]shape{
		"steady":        {slots: 4, works: mixed, rate: rate(2.1)},
		"office hours":  {slots: 8, works: mixed, rate: func(at time.Duration) float64 { return 8 * daily(at) }},
		"nightly batch": {slots: 4, works: mixed, batch: 30, rate: rate(0.4)},
		"one slot":      {slots: 1, works: longer(mixed[1:2], 2), rate: rate(0.37)},
		"long tail":     {slots: 6, works: []work{{"job/any", 1, 20 * time.Minute, 1.6, 0}}, rate: rate(3.5)},
		"slower work":   {slots: 4, works: mixed, slower: 1.5, rate: rate(1.7)},
		"heavy tail":    {slots: 4, works: []work{{"job/any", 1, 15 * time.Minute, 0, 1.4}}, rate: rate(5.5)},
		"bursts":        {slots: 5, works: short, bursts: 6, rate: rate(0.5)},
		"wide":          {slots: 40, works: longer(mixed, 2), rate: func(at time.Duration) float64 { return 20 * daily(at) * daily(at) }},
	}
}

// arrival is a simulated run.
type arrival struct {
	class               string
	at, start, run, end time.Duration // relative to the start of the month
	running, base       time.Duration
	queued              bool
}

func (a *arrival) ends() time.Duration { return a.running + a.start + a.run }

// arrivals draws the runs of a month.
func (s shape) arrivals(random *rand.Rand) (all []*arrival) {
	most := 0.0
	for at := time.Duration(0); at < 24*time.Hour; at += time.Hour {
		most = max(most, s.rate(at))
	}
	add := func(at time.Duration) {
		u, w := random.Float64(), s.works[0]
		for _, w = range s.works {
			if u -= w.share; u < 0 {
				break
			}
		}
		took := w.draw(random)
		if s.slower > 0 && at > month/2 {
			took *= s.slower
		}
		start := float64(3*time.Second) * math.Exp(0.4*random.NormFloat64())
		all = append(all, &arrival{class: w.class, at: at, start: time.Duration(start), run: time.Duration(took)})
	}
	for at := time.Duration(0); at < month; {
		at += time.Duration(random.ExpFloat64() / most * float64(time.Hour))
		if random.Float64() < s.rate(at)/most {
			add(at)
		}
	}
	for night := time.Duration(0); night < month && s.batch > 0; night += 24 * time.Hour {
		for range s.batch {
			add(night + time.Duration(random.Float64()*float64(time.Second)))
		}
	}
	for at := time.Duration(0); s.bursts > 0; {
		if at += time.Duration(random.ExpFloat64() / s.bursts * 24 * float64(time.Hour)); at >= month {
			break
		}
		for range 1 + random.IntN(40) {
			add(at + time.Duration(random.Float64()*float64(time.Minute)))
		}
	}
	slices.SortFunc(all, func(a, b *arrival) int { return int(a.at - b.at) })
	return all
}

// pool is a simulated pool. As in the use cases, its measures come from the newest runs that
// have ended, and are at most a minute old.
type pool struct {
	shape
	held, queue, seen []*arrival
	measures          explain.Measures
	measuredAt        time.Duration
	forecast          explain.Forecast
	forecastAt        time.Duration
}

func (p *pool) measure(now time.Duration) {
	if p.measuredAt > 0 && now-p.measuredAt < time.Minute {
		return
	}
	p.measuredAt = now
	var of []explain.Measure
	for _, a := range slices.Backward(p.seen) {
		if a.running == 0 || a.running+a.start > now {
			continue
		}
		m := explain.Measure{Class: a.class, Start: a.start, Held: a.end - a.running, Active: a.end == 0 || a.end > now}
		if m.Active {
			m.Held = now - a.running
			if !slices.Contains(p.known(), a) {
				continue
			}
		}
		if a.base > 0 && !m.Active {
			m.Ratio, m.At = float64(a.running+a.start-a.at)/float64(a.base), time.Unix(0, 0).Add(a.at)
		}
		m.HeldByRun = m.Held
		if of = append(of, m); len(of) == 256 {
			break
		}
	}
	p.measures = explain.NewMeasures(of)
}

// known returns the holders whose records are read.
func (p *pool) known() []*arrival { return p.held[:min(len(p.held), 32)] }

func (p *pool) expected(now time.Duration, class string) explain.Range {
	p.measure(now)
	if len(p.held) < p.slots {
		return p.measures.Started(class)
	}
	if p.forecastAt == 0 || now-p.forecastAt >= time.Second {
		l := explain.Load{Limit: p.slots, Others: len(p.held) - len(p.known())}
		for _, a := range p.known() {
			l.Held = append(l.Held, explain.Held{Class: a.class, Age: now - a.running})
		}
		p.forecast, p.forecastAt = explain.NewForecast(l, p.measures), now
	}
	return p.forecast.Queued(len(p.queue), class)
}

// outcome has the predictions of several months.
type outcome struct {
	all, half, covered int
	// unmeasured is the number of runs without a prediction, because no run was measured before
	// they joined.
	unmeasured int
	// queued are the predictions of runs that were queued.
	queued []predicted
}

// predicted is a prediction and the actual wait, in hours.
type predicted struct{ wait, p50, p90 float64 }

func (o *outcome) add(other outcome) {
	o.all, o.half, o.covered = o.all+other.all, o.half+other.half, o.covered+other.covered
	o.queued, o.unmeasured = append(o.queued, other.queued...), o.unmeasured+other.unmeasured
}

func (o outcome) coverage() float64 { return share(o.covered, o.all) }

func (o outcome) queuedCoverage() float64 {
	covered := 0
	for _, p := range o.queued {
		if p.wait <= p.p90 {
			covered++
		}
	}
	return share(covered, len(o.queued))
}

func share(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// loss returns the pinball loss of a quantile. The true quantile minimizes it.
func loss(q, predicted, wait float64) float64 {
	return max(q*(wait-predicted), (q-1)*(wait-predicted))
}

// skills returns the fractions by which the predictions reduce the losses of the p50 and the
// p90. The reference is the best constant prediction for all queued runs, which is known only
// after the months.
func (o outcome) skills() (p50, p90 float64) {
	waits := make([]float64, len(o.queued))
	for i, p := range o.queued {
		waits[i] = p.wait
	}
	slices.Sort(waits)
	equal50, equal90 := waits[len(waits)/2], waits[len(waits)*9/10]
	var own50, own90, all50, all90 float64
	for _, p := range o.queued {
		own50, all50 = own50+loss(0.5, p.p50, p.wait), all50+loss(0.5, equal50, p.wait)
		own90, all90 = own90+loss(0.9, p.p90, p.wait), all90+loss(0.9, equal90, p.wait)
	}
	return 1 - own50/all50, 1 - own90/all90
}

// errors returns the mean wait, the mean error of the p50, and the mean difference of p90 and
// p50, in hours.
func (o outcome) errors() (wait, late, width float64) {
	for _, p := range o.queued {
		wait, late, width = wait+p.wait, late+math.Abs(p.wait-p.p50), width+p.p90-p.p50
	}
	n := float64(len(o.queued))
	return wait / n, late / n, width / n
}

func (o outcome) String() string {
	wait, late, width := o.errors()
	skill50, skill90 := o.skills()
	return fmt.Sprintf("%d runs, %d before the first measured one, p50 covers %.1f %%, p90 %.1f %%; %d queued, %.1f %%, mean wait %.2f h, error of p50 %.2f h, p90 %.2f h later, skills %.2f and %.2f",
		o.all, o.unmeasured, share(o.half, o.all), o.coverage(), len(o.queued), o.queuedCoverage(), wait, late, width, skill50, skill90)
}

// play simulates a month and returns its predictions.
func (s shape) play(random *rand.Rand) (o outcome) {
	p := &pool{shape: s}
	begin := func(a *arrival, now time.Duration) {
		a.running = now
		p.held = append(p.held, a)
	}
	advance := func(to time.Duration) {
		for len(p.held) > 0 {
			first := slices.MinFunc(p.held, func(a, b *arrival) int { return cmp.Compare(a.ends(), b.ends()) })
			if first.ends() > to {
				return
			}
			first.end = first.ends()
			p.held = slices.DeleteFunc(p.held, func(a *arrival) bool { return a == first })
			if len(p.queue) > 0 {
				begin(p.queue[0], first.end)
				p.queue = p.queue[1:]
			}
		}
	}
	var made []explain.Range
	all := s.arrivals(random)
	for _, a := range all {
		advance(a.at)
		expected := p.expected(a.at, a.class)
		made, a.base, p.seen = append(made, expected), expected.Base, append(p.seen, a)
		if a.queued = len(p.held) >= s.slots; a.queued {
			p.queue = append(p.queue, a)
		} else {
			begin(a, a.at)
		}
	}
	advance(math.MaxInt64)
	one := func(is bool) int { return map[bool]int{true: 1}[is] }
	for i, a := range all {
		if made[i].Measured == 0 {
			o.add(outcome{unmeasured: 1})
			continue
		}
		took := a.running + a.start - a.at
		covered := took <= made[i].P90
		o.add(outcome{all: 1, half: one(took <= made[i].P50), covered: one(covered)})
		if a.queued {
			o.queued = append(o.queued, predicted{took.Hours(), made[i].P50.Hours(), made[i].P90.Hours()})
		}
	}
	return o
}

// TestNineTenthsOfTheStartsAreCovered simulates months of each load. Nine tenths of the runs
// must start by the p90 of their prediction, and about half by its p50. The ranges must be
// narrow: better than the best constant prediction. Without -months it simulates some loads,
// each for about a month.
func TestNineTenthsOfTheStartsAreCovered(t *testing.T) {
	t.Parallel()
	least := 500
	if *months {
		least = 2000
	}
	for name, s := range shapes() {
		if !*months && !slices.Contains(quick, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o outcome
			for seed := uint64(2); len(o.queued) < least; seed++ { // the errors within one month are correlated
				o.add(s.play(rand.New(rand.NewPCG(1, seed))))
			}
			t.Logf("%s: %s", name, o)
			if o.coverage() < 90 || o.queuedCoverage() < 90 {
				t.Errorf("got %s; want a p90 that covers 90 %%", o)
			}
			if share(o.unmeasured, o.all) > 4 {
				t.Errorf("got %d runs before the first measured one, want few", o.unmeasured)
			}
			if p50 := share(o.half, o.all); p50 < 40 || p50 > 62 {
				t.Errorf("got %s; want a p50 that covers about half", o)
			}
			if p50, p90 := o.skills(); p50 < 0.4 || p90 < 0.15 {
				t.Errorf("got %s; want skills of 0.4 and 0.15", o)
			}
		})
	}
}
