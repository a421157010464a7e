// Package simulation runs Sortie under a clock of its own: the real state
// machine file on the real engine, the real use cases, the real store; and a
// world around them that is slow, lossy and mean. One number, the seed, decides
// everything that happens, so that a failure can be had again.
//
//	clients ──► Service ──► fake.Store  ──► SQLite
//	   ▲          │  ▲
//	   └─ world ◄─┘  └── engine (single steps)
//	      machines, workers, buckets, lost calls, crashes
//
// Workers know the worker contract, or CALLBACK_URL alone, and call through the
// real HTTP handlers. They are cloned, frozen, deaf or dead; their calls are lost,
// repeated and late; clients cancel in the middle of anything; the network, the
// process and the clock are away for minutes.
//
// After every step it holds the system to what the design promises: one worker
// is heard of an attempt, and what others say changes nothing; slots are never
// more than the pool has; a run ends once, events have no gaps; what was
// acknowledged stands; a worker that beats is never declared dead, and one that
// does not is, in time; what is kept is what the accepted attempt uploaded, and
// two sweeps after the end nothing is left running.
//
// It is single-threaded: while a use case waits, time and the world go on, and
// what the world does then calls the use cases again, in the middle of the one
// that waits.
package simulation
