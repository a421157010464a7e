// Package stack runs the whole system in one process, for development and tests: the deployed
// handlers behind HTTP, the state machine file on local/twin/engine, SQLite, an S3-compatible
// store, the Fly Machines API on loopback, and the entity API of a collection.
//
//	client ──HTTP──► functions/* ──► shared/app   ──► SQLite
//	                                   │   ▲  │
//	              local/twin/engine ◄───────┘   │  └──fly-go──► local/twin/flymachines ──► worker
//	              (run.asl.json) ──────────┘                                      │
//	client ◄─────────────────────────── local/twin/s3 ◄────────────────────────────────┘
//
// A second Start with the same folder resumes after a stop or a kill: it has the same runs,
// timers, tokens, objects, machines and worker-facing addresses. One process uses a folder at a
// time.
//
// The package only connects parts. It accepts what the deployed system accepts.
package stack
