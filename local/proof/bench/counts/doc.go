// Package counts counts the cost of one run: commits, rows, bytes, decoded records, signatures,
// calls and allocations. Its test writes the table of counts in the README of the benchmarks,
// and fails when a count has changed.
//
//	clients, workers ──► HTTP handlers ──► use cases ──► SQLite, or DynamoDB's adapter on awsfake
//	                                          │  ▲
//	                                machines ◄┘  └── local engine, or Step Functions' adapter on awsfake
//
// Unlike times, counts are the same on any machine. One goroutine drives the state machine and
// the workers in a synctest bubble, so nothing runs concurrently and waiting takes no time.
// There are no sweeps and no heartbeats, because their number depends on the duration of a run.
// The relay runs once after each run.
package counts
