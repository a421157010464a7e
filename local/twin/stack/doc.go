// Package stack is the whole of Sortie in one process, for development and for
// tests: the deployed handlers behind HTTP, the state machine file on
// local/twin/engine, SQLite, an S3-compatible store, the Fly Machines API on
// loopback, and the entity API that serves a collection.
//
//	client ──HTTP──► functions/* ──► orchestrator ──► SQLite
//	                                   │   ▲  │
//	              local/twin/engine ◄───────┘   │  └──fly-go──► local/twin/flymachines ──► worker
//	              (run.asl.json) ──────────┘                                      │
//	client ◄─────────────────────────── local/twin/s3 ◄────────────────────────────────┘
//
// It promises that a second Start on the same folder goes on where the first
// was, whether that was stopped or killed: runs, timers, tokens, objects and
// machines are found again, and so are the addresses that workers were told.
// One process uses a folder at a time.
//
// It refuses nothing that the deployed system accepts; what it adds is wiring.
package stack
