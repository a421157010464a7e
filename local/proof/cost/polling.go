package cost

import (
	"math"
	"time"
)

// The usual state machine that waits for a job polls: it loops over Wait, a Lambda function
// that checks the job, and a Choice.
const (
	pollInterval    = 30 * time.Second
	pollTransitions = 3.0
	pollSeconds     = 0.1 // for a Lambda function that reads one item and inspects one machine
	pollMemoryGB    = 0.25
)

// Polling returns the usage of the same run under a state machine that polls instead of waiting
// for a task token. It has no transitions and heartbeats of waiting, but as many rounds as fit
// into its duration.
//
// Its start and end are assumed to cost as much as ours, which favours polling.
func Polling(plain Usage, lasts time.Duration) Usage {
	rounds := math.Ceil(lasts.Seconds() / pollInterval.Seconds())
	return plain.Plus(Usage{
		Transitions: pollTransitions * rounds, LambdaRequests: rounds,
		LambdaGBs: rounds * pollSeconds * pollMemoryGB, ReadUnits: rounds,
	})
}

// PolledQueues counts the queues whose messages invoke functions, by kind. The FIFO queue is
// for tenants with WebSockets.
func PolledQueues() map[Kind]int { return map[Kind]int{QueueRequests: 1, FIFORequests: 1} }

// Polls returns the monthly requests with which Lambda polls the queues without receiving a
// message: five pollers per queue, each with a request of 20 s.
func Polls() Usage {
	const pollers, inAMinute, minutes = 5, 3, 30 * 24 * 60
	used := Usage{}
	for kind, queues := range PolledQueues() {
		used[kind] = float64(queues * pollers * inAMinute * minutes)
	}
	return used
}
