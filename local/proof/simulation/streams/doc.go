// Package streams has the event stream of the simulated world, the relays that write it, and the
// clients with webhooks.
//
//	events.go       the observed stream, which is also the bus and the queue of the webhooks
//	hosts.go        processes that relay and deliver, with injected faults
//	writers.go      the turns of relays
//	relays.go       when relays, deliveries and sweeps run
//	subscribers.go  webhooks and their receivers
//	settle.go       the delivery of what is left at the end, and the checks of it
package streams
