package cost

import (
	"math"
	"time"
)

// The usual state machine that waits for a job polls: Wait, a Lambda function
// that asks, a Choice, and again.
const (
	pollInterval    = 30 * time.Second
	pollTransitions = 3.0
	pollSeconds     = 0.1 // a Lambda function that reads one item and inspects one machine
	pollMemoryGB    = 0.25
)

// Polling returns the usage of the same run under a state machine that polls
// instead of waiting for a task token: without the transitions and heartbeats
// of waiting, and with as many rounds as fit into its duration.
//
// Its start and end are assumed to cost as much as ours, which favours polling.
func Polling(plain Usage, lasts time.Duration) Usage {
	rounds := math.Ceil(lasts.Seconds() / pollInterval.Seconds())
	return plain.Plus(Usage{
		Transitions: pollTransitions * rounds, LambdaRequests: rounds,
		LambdaGBs: rounds * pollSeconds * pollMemoryGB, ReadUnits: rounds,
	})
}

// PolledQueues are the queues whose messages invoke functions, by their unit. The FIFO one is that
// of tenants with WebSockets.
func PolledQueues() map[Kind]int { return map[Kind]int{QueueRequests: 1, FIFORequests: 1} }

// Polls returns the requests with which Lambda asks the queues for messages in a month without
// any: five pollers for each queue, each with a request of 20 s.
func Polls() Usage {
	const pollers, inAMinute, minutes = 5, 3, 30 * 24 * 60
	used := Usage{}
	for kind, queues := range PolledQueues() {
		used[kind] = float64(queues * pollers * inAMinute * minutes)
	}
	return used
}
