// Package delivery brings the events of commits to their receivers: the streams of tenants, the
// bus, and webhooks.
//
//	outbox ─▶ Relay ─▶ stream of the tenant ─┬─▶ Bus
//	                                         └─▶ Dispatch ─▶ queue ─▶ Deliverer ─▶ webhook
//
// The Relay appends the events of a commit to the stream of their tenant: each event once, and
// the events of a commit in order. The Bus and Dispatch read the stream after a cursor. A
// Deliverer makes the attempts of one webhook. Delivery is at least once, and receivers
// deduplicate by the id of the event.
//
// Webhooks has the subscriptions of clients, and Replays sends events of a range again. A
// StreamSweep finishes what a process has left, and EventLevels measures how much is left. Turns
// saves lost races between processes that write or read the same stream.
//
// All state is in the store and in the feed, and every write is compare-and-set. So any number
// of processes can do the same work at the same time. The package knows runs only as events and
// as tasks that exist.
//
// It exports more names than most packages, because each part runs in a function of its own:
// relay, deliver, webhooks and the sweep of streams.
package delivery
