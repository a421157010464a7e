// Package simulation runs Sortie under a virtual clock: the real state machine
// file on the real engine, the real use cases, handlers and stores, in a
// simulated world of slow and unreliable clients, workers, machines and
// networks. The seed determines the world, so that a failure can be repeated.
//
//	clients ──► use cases ──► fake.Store ──► SQLite, or DynamoDB's adapter on awsfake
//	   ▲          │  ▲
//	   └─ world ◄─┘  └── local engine, or Step Functions' adapter on awsfake
//	      machines, workers, buckets, lost calls, crashes, outages
//
// Odd seeds play on SQLite and the local engine, which crash and restart with
// the process. Even seeds play on the adapters of AWS, where every call has a
// process of its own, reads are stale, indexes lag, transactions conflict, and
// calls have quotas.
//
// Settings come from their whole ranges (settings.go). Workers use the worker
// contract, or CALLBACK_URL alone, and call through the real HTTP handlers. They
// are cloned, frozen, killed, obey the deadline, or ignore signals. Their calls
// are lost, repeated and late. Clients cancel in the middle of other operations.
// Strangers stop machines. Services fail for seconds or hours, the clocks of
// hosts are wrong, and contexts end in the middle of calls.
//
// After every event the invariants are checked. Facts never change
// (invariants.go): only one worker per attempt is accepted; the pool's limit and
// the order of its queue hold; a limit is never applied early; a machine that a
// run needs is not destroyed; attempts do not overlap; acknowledged calls are
// not lost. Every wait has an end (prompt.go): a bound for worlds in which
// Sortie and its services do not fail, and a wider one for others. At the end
// (check.go) a run has ended once, its events have no gaps, the output is that
// of the accepted attempt, and nothing else is left.
//
// Calls run as coroutines on one thread: while a call waits, others run.
package simulation
