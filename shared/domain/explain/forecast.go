package explain

import (
	"math"
	"slices"
	"time"
)

// Range is the estimate of a time, counted from now.
type Range struct {
	// P50 and P90 are percentiles: half and nine tenths of the runs take at most that long.
	P50, P90 time.Duration
	// Base is the P90 before its correction by the errors of earlier predictions; 0 for a run
	// that is not queued.
	Base time.Duration
	// Measured is the number of measured runs behind the estimate. If it is 0, the estimate is
	// PerPosition for each run ahead.
	Measured int
}

// PerPosition is the expected time for each position of a queue if no run was measured.
const PerPosition = 100 * time.Millisecond

// Held is a held slot.
type Held struct {
	Class string
	// Age is how long the slot has been held.
	Age time.Duration
}

// Load describes the slots of a pool and their use.
type Load struct {
	// Limit is the number of slots; 0 means no limit.
	Limit int
	// Held are the slots whose holder is known. Others is the number of the other held slots.
	Held   []Held
	Others int
	// HeldByRun: the slots belong to a job or a key. A run holds one until it ends, over all its
	// attempts.
	HeldByRun bool
	// Permit is the time until the next permitted start. Interval is the time between two
	// permitted starts. Both are zero if starts are not limited.
	Permit, Interval time.Duration
}

// Forecast estimates when queued runs get a slot.
type Forecast struct {
	measures Measures
	// p50 and p90 are the percentiles for the first positions. After these, each run ahead adds
	// a time with this mean and variance, in seconds.
	p50, p90       []time.Duration
	mean, variance float64
	// measured is the number of runs behind the mean.
	measured float64
	// permit and interval are copied from the load.
	permit, interval time.Duration
}

const (
	trials = 200
	// alikeTrials is the number of trials that use the same drawn runs.
	alikeTrials = 4
	// steps is the number of simulated positions.
	steps = 64
	// widest is the maximum number of simulated slots. A larger pool is simulated with this
	// many slots and proportionally shorter runs.
	widest = 256
	// mostMeasured limits the work of a trial.
	mostMeasured = 256
)

// NewForecast simulates the load with the measured runs. It takes about a millisecond.
func NewForecast(l Load, measures Measures) Forecast {
	f := Forecast{measures: measures, permit: l.Permit, interval: l.Interval}
	sim := simulation{load: l, by: measures.held, random: 1, slots: 1, scale: 1}
	if l.HeldByRun {
		sim.by = measures.heldByRun
	}
	sim.known = sim.by[all]
	if l.Limit == 0 {
		sim.known, sim.load.Held, sim.load.Others = distribution{0}, nil, 0 // runs wait only for permits
	}
	if len(sim.known) == 0 {
		return f
	}
	sum := 0.0
	for _, each := range sim.known {
		sum += each.Seconds()
		sim.sums = append(sim.sums, sum)
	}
	sim.next = make(distribution, min(max(measures.Count, 1), mostMeasured))
	if l.Limit > 0 {
		sim.slots = min(l.Limit, widest)
		sim.scale = float64(sim.slots) / float64(l.Limit)
	}
	waits := make([][]time.Duration, steps)
	for trial := range trials {
		if trial%alikeTrials == 0 {
			sim.redraw()
		}
		sim.trial(func(position int, wait time.Duration) { waits[position] = append(waits[position], wait) })
	}
	for _, each := range waits {
		slices.Sort(each)
		f.p50, f.p90 = append(f.p50, quantile(each, 0.5)), append(f.p90, quantile(each, 0.9))
	}
	f.mean, f.variance = moments(sim.known)
	slots := float64(max(l.Limit, 1))
	f.mean, f.variance = max(f.mean/slots, l.Interval.Seconds()), f.variance/slots/slots
	f.measured = float64(len(sim.next))
	f.variance += (f.mean*f.mean + f.variance) / (f.measured + 1)
	return f
}

// moments returns the mean and the variance of the distribution, in seconds.
func moments(d distribution) (mean, variance float64) {
	for _, each := range d {
		mean += each.Seconds() / float64(len(d))
	}
	for _, each := range d {
		variance += (each.Seconds() - mean) * (each.Seconds() - mean) / float64(len(d))
	}
	return mean, variance
}

// Started returns when a run of the class is expected to start if it gets its slot now.
func (m Measures) Started(class string) Range {
	sorted := of(m.starts, class)
	if len(sorted) == 0 {
		return Range{}
	}
	return Range{P50: quantile(sorted, 0.5), P90: quantile(sorted, 0.9), Measured: len(sorted)}
}

// mostLarger is the largest factor by which runs of a larger size are expected to take longer
// than measured runs.
const mostLarger = 32

// Queued is QueuedAs with an unknown size.
func (f Forecast) Queued(position int, class string) Range { return f.QueuedAs(position, class, 0) }

// QueuedAs returns when a run of the class and size is expected to start from a position in the
// queue; the first position is 0. If the run is larger than the measured runs, the runs ahead
// are assumed to be as large as it, as in a burst.
func (f Forecast) QueuedAs(position int, class string, size float64) Range {
	if len(f.p50) == 0 {
		wait := f.permit + time.Duration(position)*max(PerPosition, f.interval)
		return Range{P50: wait, P90: wait}
	}
	at := min(position, len(f.p50)-1)
	wait := Range{P50: f.p50[at], P90: f.p90[at], Measured: f.measures.Count}
	if beyond := float64(position - at); beyond > 0 {
		spread := wait.P90 - wait.P50
		wait.P50 += seconds(beyond * f.mean)
		wait.P90 = wait.P50 + beside(spread, seconds(z90*math.Sqrt(f.variance*beyond*(1+beyond/f.measured))))
	}
	if known := f.measures.size; known > 0 && size > known {
		factor := min(size/known, mostLarger)
		wait.P50, wait.P90 = seconds(wait.P50.Seconds()*factor), seconds(wait.P90.Seconds()*factor)
	}
	wait = wait.Then(f.measures.Started(class))
	wait.Base = wait.P90
	wait.P90 = max(seconds(wait.Base.Seconds()*f.measures.factor), wait.P50)
	return wait
}

// Then returns the range of the end of next, which begins when r ends.
func (r Range) Then(next Range) Range {
	middle := r.P50 + next.P50
	all := Range{P50: middle, P90: middle + beside(r.P90-r.P50, next.P90-next.P50), Measured: max(r.Measured, next.Measured)}
	if r.Base+next.Base > 0 {
		all.Base = middle + beside(max(r.Base-r.P50, 0), max(next.Base-next.P50, 0))
	}
	return all
}

// NotBefore returns the range with each time raised to at least delay.
func (r Range) NotBefore(delay time.Duration) Range {
	r.P50, r.P90 = max(r.P50, delay), max(r.P90, delay)
	if r.Base > 0 {
		r.Base = max(r.Base, delay)
	}
	return r
}

// z90 is the 90th percentile of the normal distribution.
const z90 = 1.2816

// beside returns the spread of the sum of two independent times with spreads a and b.
func beside(a, b time.Duration) time.Duration {
	return seconds(math.Hypot(a.Seconds(), b.Seconds()))
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/4))
}

// simulation simulates when the slots of a load become free.
type simulation struct {
	load Load
	by   map[string]distribution
	// known are the measured times of the queued runs. next is drawn from known, so that a
	// forecast from few measured runs is more uncertain.
	known, next distribution
	// sums are the partial sums of known, in seconds.
	sums   []float64
	slots  int
	scale  float64
	random uint64
	// free are the times at which the slots become free, sorted.
	free []time.Duration
}

// redraw draws the next runs, as if other runs had been measured. On average, one of them has
// an exponential time with the mean of the measured ones, to represent a run of another kind.
func (s *simulation) redraw() {
	unlike := 1 / float64(len(s.next)+1)
	for i := range s.next {
		s.next[i] = s.draw(s.known)
		if s.unit() < unlike {
			s.next[i] = seconds(-s.next[i].Seconds() * math.Log(1-s.unit()))
		}
	}
}

// trial simulates once. It reports when the run at each of the first positions gets a slot.
func (s *simulation) trial(report func(position int, wait time.Duration)) {
	s.free = s.free[:0]
	for _, h := range s.load.Held {
		s.free = append(s.free, s.left(of(s.by, h.Class), h.Age))
	}
	for range min(s.load.Others, 4*widest) {
		s.free = append(s.free, s.unknownLeft())
	}
	slices.Sort(s.free)
	if held := int(float64(len(s.load.Held)+s.load.Others)*s.scale + 0.5); held < len(s.free) { // the pool has more slots than the simulation
		for i := range held {
			s.free[i] = s.free[i*len(s.free)/held]
		}
		s.free = s.free[:held]
	}
	if more := len(s.free) - s.slots; more > 0 { // the limit was lowered
		s.free = s.free[more:]
	}
	for range s.slots - len(s.free) {
		s.free = append(s.free, 0)
	}
	slices.Sort(s.free)
	permit := s.load.Permit
	for position := range steps {
		at := max(s.free[0], permit)
		permit = at + s.load.Interval
		report(position, at)
		s.replace(at + time.Duration(float64(s.draw(s.next))*s.scale))
	}
}

// replace removes the first time and inserts another one, sorted.
func (s *simulation) replace(at time.Duration) {
	i, _ := slices.BinarySearch(s.free[1:], at)
	copy(s.free, s.free[1:1+i])
	s.free[i] = at
}

// left draws the remaining time of a slot that has been held for age.
func (s *simulation) left(d distribution, age time.Duration) time.Duration {
	if i, _ := slices.BinarySearch(d, age+1); i < len(d) {
		return s.draw(d[i:]) - age
	}
	// No measured run took this long: the remaining time grows with the age.
	u := s.unit()
	return seconds(age.Seconds() * u / (1 - u))
}

// unknownLeft draws the remaining time of a slot with an unknown age. Longer runs are more
// likely to hold a slot.
func (s *simulation) unknownLeft() time.Duration {
	i, _ := slices.BinarySearch(s.sums, s.unit()*s.sums[len(s.sums)-1])
	return time.Duration(s.unit() * float64(s.known[i]))
}

func (s *simulation) draw(from distribution) time.Duration {
	return from[int(s.unit()*float64(len(from)))]
}

// unit returns a pseudo-random number from 0 (inclusive) to 1 (exclusive). It uses the
// generator splitmix64, so that equal loads have equal forecasts.
func (s *simulation) unit() float64 {
	s.random += 0x9e3779b97f4a7c15
	z := s.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
