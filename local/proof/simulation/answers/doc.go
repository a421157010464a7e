// Package answers simulates inference tasks: the real use cases, dispatchers, stores and
// streams under a virtual clock, with engines, clients and processes that fail. One dispatcher
// has many goroutines, so that a world runs in a bubble of testing/synctest, whose time moves
// when all of them wait; the worlds of the parent package have one thread. The seed determines
// the world and the fate of each call, but not the order of goroutines that the same moment
// wakes: a seed that fails does so again nearly always.
//
//	clients ──► Inference, Budgets ──► faults ──► SQLite, or DynamoDB's adapter on awsfake
//	readers ◄── Follow ◄───────────── faults ◄── streams of the Feed
//	            Dispatcher ─────────► replicas: mock engines
//
// In worlds of odd seeds one process has everything, and the next one follows when it is
// killed. In the others two or three processes share the store, each with a dispatcher, and
// clients call any of them. A process is killed before or after any call of the store, of a
// stream or of an engine: nothing that it does from then on has an effect. Calls are slow,
// lost, or applied and reported as failed, and the contexts of clients end. In every third
// world only engines and clients fail.
//
// An engine refuses because it is busy or loading, fails before its first piece, breaks the
// connection, ends without its final event, sends an error, says nothing any more, sends a
// piece twice, answers slowly, and keeps the slot of a request that its caller has closed. For a
// while it refuses everything, with 429, with 500 or in silence, and does not say how it is.
//
// Clients submit under keys, again and again, some with another process; ask for
// completions, embeddings and ranks, in sessions and projects; cancel at any moment; and
// follow streams on connections that are cut, behind the last event that they got. Callers
// that wait for their answer hang up, in a stream or at any moment before. The operator sets limits of budgets, deletes sessions,
// and drains and resumes the pool.
//
// When everything waits, between two moments, the accounts must hold and have spent the sums
// over the runs, no limit that held from the beginning is exceeded, and no more runs have a
// slot than the pool has (state.go). No task has a slot, or a request at an engine, for longer
// than the grace of 5 seconds after the end of its stream or its attempt (slots.go). A process never has more requests at a replica than it
// has slots, and sends none to a replica that keeps one of its closed requests (engines.go).
// A reader gets each event once, in order, without a gap, and nothing behind a terminal one;
// an acknowledged cancel has ended the stream (readers.go, clients.go). Faults end after some
// minutes. Then every accepted task ends within a bound, each stream has one terminal record,
// the last one, which agrees with its run; the accounts equal what the streams say was used,
// to the token; and no reservation, slot or request is left (check.go).
package answers
