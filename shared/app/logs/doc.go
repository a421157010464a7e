// Package logs reads and stores the output of workers.
//
//	worker ─▶ Intake ─▶ output of the attempt ─┐
//	machine, upload ───────────────────────────┼─▶ Archive ─▶ clients
//	                        stored log ◀───────┘
//
// A worker can send its output while it runs: Intake stores it, in order and once. When the
// attempt ends, Archive.StoreFinal stores its log until the record of the run expires. Archive
// reads the log of an attempt from the best source that exists, or follows it as it grows, and
// masks the secrets of the worker.
//
// A log is best effort: a run never waits for it. Accepted output is durable.
package logs
