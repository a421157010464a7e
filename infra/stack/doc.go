// Package stack is Sortie on AWS: everything that is deployed, one file per
// concern.
//
// It promises that the stack is what the code says: the API's methods are the
// routes of the front doors, the state machine is the file that the laptop
// runs, and the table is the one that its adapter describes. A template depends
// on the settings and on the bytes of the functions alone, so that the same
// input gives the same template.
//
// It refuses settings that cannot be deployed, naming every problem at once,
// and it refuses wildcards: what a function may do stands in functions.go, and
// a test asks for the reason of everything that is wider than one resource.
//
//	clients, workers ──> API ──> front doors ──┐          ┌──> alarms ──> mail
//	                                           ├──> table ┴─stream─> relay ──> bus
//	state machine ──> steps ───────────────────┤
//	every minute, ended executions ──> sweep ──┘
package stack
