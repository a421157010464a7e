package explain

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Measure has the times of one run, taken from its record.
type Measure struct {
	// Class groups runs of similar work: those of a job, or exports of a format and image.
	Class string
	// Start is the mean time of an attempt from its slot until its machine ran.
	Start time.Duration
	// Held is the mean time that an attempt held its slot of the pool. HeldByRun is the time that
	// the run held the slots of its job and key.
	Held, HeldByRun time.Duration
	// Size is the size of the work, from SizeOf.
	Size float64
	// Active: the run has not ended, so Held and HeldByRun are the times so far.
	Active bool
	// Ratio is the time that the run waited in a queue, divided by the uncorrected p90 of its
	// prediction; 0 without a prediction. At is the time of the prediction.
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

// SizeOf returns the size of the work of a run, if times grow with it: the maximum number of
// tokens that an inference task generates. 0 means unknown.
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

// MeasureOf returns the measured times of a run. ok is false if its machine never started.
func MeasureOf(r run.Run, now time.Time) (m Measure, ok bool) {
	if r.Attempt.StartedAt.IsZero() || len(r.Tally.States) == 0 {
		return m, false
	}
	spent := r.Metrics(now).Phases
	attempts := time.Duration(r.Attempt.Number)
	m = Measure{Class: ClassOf(r), Size: SizeOf(r), Active: !r.State.Terminal()}
	m.Start = spent[run.PhaseContainerCreation]/attempts + spent[run.PhaseConstraintCheck]
	m.HeldByRun = spent[run.PhaseContainerCreation] + spent[run.PhaseExecution] + spent[run.PhaseTermination]
	m.Held = m.HeldByRun / attempts
	m.HeldByRun += spent[run.PhaseRetryDelay]
	if p := r.Prediction; p != nil && p.Base > 0 {
		m.Ratio = float64(p.Waited().Milliseconds()) / float64(p.Base)
		m.At = p.At
	}
	return m, true
}

// Measures summarizes the measured runs of a pool or a job.
type Measures struct {
	// Count is the number of measured runs that have ended.
	Count           int
	starts          map[string][]time.Duration
	held, heldByRun map[string]distribution
	// size is the mean size of the measured runs that have ended; 0 means unknown.
	size float64
	// factor corrects the p90 of queued runs by the ratios of measured runs; see correction.
	factor float64
}

// Starts returns the number of measured starts, and the 50th and 99th percentiles of their
// times. All are 0 without a measured start.
func (m Measures) Starts() (count int, p50, p99 time.Duration) {
	starts := m.starts[all]
	if len(starts) == 0 {
		return 0, 0, 0
	}
	return len(starts), starts[(len(starts)-1)/2], starts[(len(starts)*99+99)/100-1]
}

// enough is the number of ended runs (or starts) that a class needs for measures of its own.
// With fewer, those of all classes are used.
const enough = 5

// all is the class of all runs.
const all = ""

// NewMeasures summarizes measured runs, including active ones. Without these, long runs would be
// under-represented, because they end after shorter runs that were created at the same time.
func NewMeasures(of []Measure) Measures {
	classes := map[string][]Measure{}
	m := Measures{starts: map[string][]time.Duration{}, held: map[string]distribution{}, heldByRun: map[string]distribution{}, factor: 1}
	var ratios []float64
	sized := 0
	of = slices.SortedFunc(slices.Values(of), func(a, b Measure) int { return a.At.Compare(b.At) })
	for _, each := range of {
		classes[all] = append(classes[all], each)
		classes[each.Class] = append(classes[each.Class], each)
		if !each.Active {
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
		var held, heldByRun []span
		ended := 0
		for _, one := range each {
			if one.Start > 0 {
				starts = append(starts, one.Start)
			}
			held, heldByRun = append(held, span{one.Held, one.Active}), append(heldByRun, span{one.HeldByRun, one.Active})
			if !one.Active {
				ended++
			}
		}
		if class == all || len(starts) >= enough {
			slices.Sort(starts)
			m.starts[class] = starts
		}
		if class == all && ended > 0 || ended >= enough {
			m.held[class], m.heldByRun[class] = distributionOf(held), distributionOf(heldByRun)
		}
	}
	if len(ratios) >= calibrated {
		m.factor = min(max(correction(ratios), 1), mostFactor)
	}
	return m
}

// correction returns a value that the next ratio does not exceed with a probability of nine
// tenths. Runs that wait at the same time are late together, so their ratios are not
// independent. The number of independent ratios is estimated as the number of times that the
// ratios, in the order of their predictions, cross their median. With fewer independent ratios,
// a higher quantile is used.
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
	// calibrated is the number of ratios that a correction needs.
	calibrated = 20
	// mostFactor is the maximum correction.
	mostFactor = 8
)

// of returns the value of the class, or that of all runs if the class has no value.
func of[T any](values map[string]T, class string) T {
	if own, ok := values[class]; ok {
		return own
	}
	return values[all]
}

// quantile returns the value that the next sample does not exceed with probability q. sorted
// has at least one value. If there are too few values for q, the result is larger than all of
// them.
func quantile[T time.Duration | float64](sorted []T, q float64) T {
	n := len(sorted)
	rank := q * float64(n+1)
	if i := int(rank + 1 - 1e-9); i <= n {
		return sorted[max(i, 1)-1]
	}
	return T(float64(sorted[n-1]) * rank / float64(n))
}

// span is a duration, or the elapsed part of a duration that has not ended.
type span struct {
	time   time.Duration
	living bool
}

// distribution is a sorted list of equally likely times.
type distribution []time.Duration

// points is the number of times of a distribution.
const points = 256

// distributionOf estimates the distribution of times, some of which have not ended, with the
// Kaplan-Meier estimator. A time beyond the longest span exceeds twice that span with
// probability one half.
func distributionOf(spans []span) distribution {
	slices.SortFunc(spans, func(a, b span) int {
		if a.time == b.time && a.living != b.living { // at equal times, an end precedes an elapsed part
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
