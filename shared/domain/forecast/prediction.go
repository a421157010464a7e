// Package forecast has the predicted starts of attempts, and how they compare with the real ones.
package forecast

import "time"

// Prediction is the predicted start of an attempt, as of its admission: when its machine will
// run. Durations are whole milliseconds, to keep the record small.
type Prediction struct {
	// At is when the run got a slot of its pool, or began to wait: in a queue, or in the action
	// on a violated constraint.
	At time.Time `json:"at"`
	// P50 and P90 are percentiles of the time from At to the start: half and nine tenths of
	// such runs start by then.
	P50 int64 `json:"p50"`
	P90 int64 `json:"p90"`
	// Base is the P90 of a queued run before its correction by the errors of earlier
	// predictions; 0 for a run that was not queued.
	Base int64 `json:"base,omitempty"`
	// Measured is the number of measured runs behind the prediction; 0 if no run was measured.
	Measured int `json:"measured,omitempty"`
	// Ahead is the number of runs that were ahead in the pool's queue; 0 for a run that was not
	// queued.
	Ahead int `json:"ahead,omitempty"`
	// Started is when the machine was first seen running; zero until then.
	Started time.Time `json:"started,omitzero"`
}

// Expectation is the expected start of an inference task. Clients receive it with the
// acceptance of the task and in the first event of its stream.
type Expectation struct {
	// Ahead is the number of runs ahead in the queue.
	Ahead int `json:"ahead,omitempty"`
	// StartMS is the expected time from the admission to the start, in milliseconds.
	StartMS int64 `json:"startMs,omitempty"`
}

// perRunAhead is the expected time, in milliseconds, for each run ahead if no run was measured.
const perRunAhead = 100

// Expectation returns the part of the prediction that clients receive.
func (p Prediction) Expectation() Expectation {
	if p.Measured == 0 {
		return Expectation{Ahead: p.Ahead, StartMS: int64(p.Ahead) * perRunAhead}
	}
	return Expectation{Ahead: p.Ahead, StartMS: p.P50}
}

// Waited returns the time from the admission to the start; 0 before the start. It is at least
// 0, because the clocks of two functions can differ.
func (p Prediction) Waited() time.Duration {
	if p.Started.IsZero() {
		return 0
	}
	return max(p.Started.Sub(p.At), 0)
}

// Error returns how much later than P50 the run started (negative if earlier), and whether it
// started by P90. ok is false before the start.
func (p Prediction) Error() (late time.Duration, covered, ok bool) {
	if p.Started.IsZero() {
		return 0, false, false
	}
	waited := p.Waited()
	return waited - time.Duration(p.P50)*time.Millisecond, waited <= time.Duration(p.P90)*time.Millisecond, true
}

// StartErrorBuckets are the upper bounds, in seconds, of the histogram of
// Prediction.Error, which has negative values.
func StartErrorBuckets() []float64 {
	return []float64{-3600, -600, -60, -10, -1, 0, 1, 10, 60, 600, 3600}
}
