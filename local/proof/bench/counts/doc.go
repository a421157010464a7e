// Package counts counts what one run costs: commits, rows, bytes, decoded records,
// signatures, calls and allocations. Its test writes the table of counts in the README of
// the measurements, and fails when a count has changed.
//
//	clients, workers ──► HTTP handlers ──► use cases ──► SQLite, or DynamoDB's adapter on awsfake
//	                                          │  ▲
//	                                machines ◄┘  └── local engine, or Step Functions' adapter on awsfake
//
// Counts are the same on any machine, unlike times. One goroutine drives the state machine
// and the workers, in a bubble of synctest, so that nothing runs at the same time and
// waiting takes no time. There is no sweep and no heartbeat: their number depends on how
// long a run takes. The relay runs once after each run.
package counts
