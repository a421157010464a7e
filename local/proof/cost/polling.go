package cost

import (
	"math"
	"time"
)

// What the usual state machine does that waits for a job: Wait, a Lambda that
// asks, a Choice, and again.
const (
	pollInterval    = 30 * time.Second
	pollTransitions = 3.0
	pollSeconds     = 0.1 // a Lambda that reads one item and asks one machine
	pollMemoryGB    = 0.25
)

// Polling is what a run costs that a polling state machine waits for, instead of
// a task token: the same run, without the transitions and heartbeats of waiting,
// and with so many rounds as its duration has.
//
// Start and end are taken to cost what ours cost, which is to its favour.
func Polling(plain Usage, lasts time.Duration) Usage {
	rounds := math.Ceil(lasts.Seconds() / pollInterval.Seconds())
	return plain.Plus(Usage{
		Transitions: pollTransitions * rounds, LambdaRequests: rounds,
		LambdaGBs: rounds * pollSeconds * pollMemoryGB, ReadUnits: rounds,
	})
}
