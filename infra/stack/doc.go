// Package stack describes the AWS resources of one stage, one file per concern.
//
// The methods of the API are the routes of the front doors. The state machine is the file that
// the local system also runs. The table is the one that its adapter describes. The template
// depends only on the settings and on the bytes of the programs, so it is reproducible.
//
// ReadSettings reports all invalid settings at once. Roles have no wildcards: functions.go
// lists what a function uses, uses.go lists the permissions of each use, and a test requires a
// reason for each permission that is wider than one resource.
//
//	clients, workers ──> API ──> front doors ──┐          ┌──> alarms ──> mail
//	                                           ├──> table ┴─stream─> relay ──> bus
//	state machine ──> steps ───────────────────┤
//	every minute, ended executions ──> sweep ──┘
package stack
