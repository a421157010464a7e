// Package stack describes the AWS resources of one stage, one file per concern.
//
// The API's methods are the routes of the front doors, the state machine is the file
// that the local system runs, and the table is the one that its adapter describes.
// The template depends only on the settings and on the bytes of the programs: the
// same input gives the same template.
//
// ReadSettings reports every invalid setting at once. Roles have no wildcards:
// functions.go lists what a function uses, uses.go the permissions of each use, and a
// test requires a reason for everything that is wider than one resource.
//
//	clients, workers ──> API ──> front doors ──┐          ┌──> alarms ──> mail
//	                                           ├──> table ┴─stream─> relay ──> bus
//	state machine ──> steps ───────────────────┤
//	every minute, ended executions ──> sweep ──┘
package stack
