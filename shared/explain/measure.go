package explain

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// Measure has the times of one run, from its record.
type Measure struct {
	// Class groups runs of similar work: those of a job, or exports of a format.
	Class string
	// Start is the time from an attempt's slot until its machine ran.
	Start time.Duration
	// Held is how long an attempt held its slot of the pool, Kept how long the run held
	// the slots of its job.
	Held, Kept time.Duration
	// Size is that of SizeOf.
	Size float64
	// Living: the run has not ended, so Held and Kept are its age.
	Living bool
	// Ratio is the time that the run waited in a queue as a part of the uncalibrated p90
	// of its prediction; 0 without one. At is when that was made.
	Ratio float64
	At    time.Time
}

// ClassOf returns the class of a run.
func ClassOf(r run.Run) string {
	if r.JobID != "" {
		return "job/" + r.JobID
	}
	return r.Work.Kind + "/" + r.Work.Format + r.Work.Image
}

// SizeOf returns the size of the work of a run, if times grow with it: the most tokens that an
// inference task generates. 0 is unknown.
func SizeOf(r run.Run) float64 {
	work := r.Work.Inference
	switch {
	case work == nil || work.Workload != "completion":
		return 0
	case !work.OpenEnd:
		return float64(work.MaxTokens)
	case r.Generation != nil:
		return float64(r.Generation.TokensOut)
	}
	return 0
}

// MeasureOf returns the times of a run. ok is false if its machine never started.
func MeasureOf(r run.Run, now time.Time) (m Measure, ok bool) {
	if r.Attempt.StartedAt.IsZero() || len(r.Tally.States) == 0 {
		return m, false
	}
	spent := r.Metrics(now).Phases
	attempts := time.Duration(r.Attempt.Number)
	m = Measure{Class: ClassOf(r), Size: SizeOf(r), Living: !r.State.Terminal()}
	m.Start = spent[run.PhaseContainerCreation]/attempts + spent[run.PhaseConstraintCheck]
	m.Kept = spent[run.PhaseContainerCreation] + spent[run.PhaseExecution] + spent[run.PhaseTermination]
	m.Held = m.Kept / attempts
	m.Kept += spent[run.PhaseRetryDelay]
	if p := r.Prediction; p != nil && p.Base > 0 {
		m.Ratio = float64(p.Waited().Milliseconds()) / float64(p.Base)
		m.At = p.At
	}
	return m, true
}

// Measures are the measured runs of a pool or of a job.
type Measures struct {
	// Count is the number of measured runs that have ended.
	Count      int
	starts     map[string][]time.Duration
	held, kept map[string]distribution
	// size is the mean size of the measured runs that have ended; 0 is unknown.
	size float64
	// factor corrects the p90 of queued runs by the ratios of the measured ones; see
	// correction.
	factor float64
}

// Starts returns the number of measured starts with the times within which half of them
// and 99 of 100 ended. They are 0 without a measured start.
func (m Measures) Starts() (count int, p50, p99 time.Duration) {
	starts := m.starts[all]
	if len(starts) == 0 {
		return 0, 0, 0
	}
	return len(starts), starts[(len(starts)-1)/2], starts[(len(starts)*99+99)/100-1]
}

// enough is the number of ended runs from which a class has measures of its own. A class
// with fewer has those of all classes.
const enough = 5

// all is the class of every run.
const all = ""

// NewMeasures summarizes measured runs. They include runs that have not ended: without
// these, long runs would be missing, because they end after the short ones that were
// created at the same time.
func NewMeasures(of []Measure) Measures {
	classes := map[string][]Measure{}
	m := Measures{starts: map[string][]time.Duration{}, held: map[string]distribution{}, kept: map[string]distribution{}, factor: 1}
	var ratios []float64
	sized := 0
	of = slices.SortedFunc(slices.Values(of), func(a, b Measure) int { return a.At.Compare(b.At) })
	for _, each := range of {
		classes[all] = append(classes[all], each)
		classes[each.Class] = append(classes[each.Class], each)
		if !each.Living {
			m.Count++
			if each.Size > 0 {
				sized++
				m.size += (each.Size - m.size) / float64(sized)
			}
		}
		if each.Ratio > 0 {
			ratios = append(ratios, each.Ratio)
		}
	}
	for class, each := range classes {
		var starts []time.Duration
		var held, kept []span
		ended := 0
		for _, one := range each {
			if one.Start > 0 {
				starts = append(starts, one.Start)
			}
			held, kept = append(held, span{one.Held, one.Living}), append(kept, span{one.Kept, one.Living})
			if !one.Living {
				ended++
			}
		}
		if class == all || len(starts) >= enough {
			slices.Sort(starts)
			m.starts[class] = starts
		}
		if class == all && ended > 0 || ended >= enough {
			m.held[class], m.kept[class] = distributionOf(held), distributionOf(kept)
		}
	}
	if len(ratios) >= calibrated {
		m.factor = min(max(correction(ratios), 1), mostFactor)
	}
	return m
}

// correction returns what covers the ratio of the next prediction with a probability of
// nine tenths. Runs that wait at the same time are late together, so that ratios in the
// order of their predictions are worth fewer independent ones: as many as the times that
// they cross their median. The fewer these are, the more of the ratios it covers.
func correction(ratios []float64) float64 {
	sorted := slices.Sorted(slices.Values(ratios))
	median, crossings := quantile(sorted, 0.5), 1
	for i := range ratios[1:] {
		if (ratios[i] > median) != (ratios[i+1] > median) {
			crossings++
		}
	}
	return quantile(sorted, min(0.9*(1+1/float64(crossings)), 1))
}

const (
	// calibrated is the number of predictions that correct later ones.
	calibrated = 20
	// mostFactor bounds the correction.
	mostFactor = 8
)

// of returns the value of a class, or that of all classes if the class has none.
func of[T any](values map[string]T, class string) T {
	if own, ok := values[class]; ok {
		return own
	}
	return values[all]
}

// quantile returns the value that the next one of the same kind does not exceed with
// probability q. sorted has at least one value. With too few values for q it is beyond
// the largest one.
func quantile[T time.Duration | float64](sorted []T, q float64) T {
	n := len(sorted)
	rank := q * float64(n+1)
	if i := int(rank + 1 - 1e-9); i <= n {
		return sorted[max(i, 1)-1]
	}
	return T(float64(sorted[n-1]) * rank / float64(n))
}

// span is a duration, or the elapsed part of one that has not ended.
type span struct {
	time   time.Duration
	living bool
}

// distribution has equally likely times, sorted.
type distribution []time.Duration

// points is the number of times of a distribution.
const points = 256

// distributionOf estimates the distribution of times of which some are under way, by
// Kaplan and Meier. A time beyond the longest span exceeds twice that span with
// probability one half.
func distributionOf(spans []span) distribution {
	slices.SortFunc(spans, func(a, b span) int {
		if a.time == b.time && a.living != b.living { // an end precedes an age
			if a.living {
				return 1
			}
			return -1
		}
		return int(a.time - b.time)
	})
	d := make(distribution, 0, points)
	left, survival := len(spans), 1.0
	reached := func(i int) float64 { return 1 - (float64(i)+0.5)/points }
	for _, s := range spans {
		if !s.living {
			survival *= float64(left-1) / float64(left)
		}
		left--
		for len(d) < points && survival <= reached(len(d)) {
			d = append(d, s.time)
		}
	}
	longest := spans[len(spans)-1].time
	for len(d) < points {
		d = append(d, seconds(longest.Seconds()*survival/reached(len(d))))
	}
	return d
}
