package cost

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
