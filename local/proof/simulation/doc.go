// Package simulation runs Sortie under a virtual clock: the real state machine
// file on the real engine, the real use cases and the real store, in a
// simulated world of slow and unreliable clients, workers, machines and
// networks. The seed determines everything that happens, so that every failure
// can be reproduced.
//
//	clients ──► Service ──► fake.Store  ──► SQLite
//	   ▲          │  ▲
//	   └─ world ◄─┘  └── engine (single steps)
//	      machines, workers, buckets, lost calls, crashes
//
// Workers use the worker contract, or CALLBACK_URL alone, and call through the
// real HTTP handlers. They are cloned, frozen, killed, or ignore signals. Their
// calls are lost, repeated and late. Clients cancel in the middle of other
// operations. The network, the process and the clock fail for minutes.
//
// After every step it checks the invariants. Only one worker per attempt is
// accepted; the pool's limit holds; a run ends once and its events have no
// gaps; acknowledged calls are not lost; a worker that sends heartbeats does
// not time out, and one that stops does, in time; the output is that of the
// accepted attempt; and nothing runs two sweeps after the end.
//
// The simulation has a single thread. While a use case waits, simulated events
// run, which may call use cases in the middle of the waiting one.
package simulation
