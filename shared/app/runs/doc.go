// Package runs implements the use cases of runs.
//
// The other use cases are the rooms of shared/app: jobs, pools, inferences, delivery, logs and
// others. A room declares what it needs of runs as an interface. Tasks, Commits, Creations and
// JobRuns implement these interfaces.
//
// Each use case loads a run, lets package run decide, commits the decision and
// then acts on its effects. A successful return means that the decision is
// committed. Losing a race is a normal result: the use case decides again on the
// newer record. Every effect may be repeated and is repeated, by the handler or by
// the sweep, until the record shows that it was done.
//
// The types follow the ports that they need:
//
//	Records       Store, Clock, Log          read runs, commit facts without effects
//	Lifecycle     Records, Executions        commit facts, grant slots, act on effects
//	Requests      Lifecycle                  submit, retry, cancel
//	Queries       Records                    tasks, lists, events, waiting for a change
//	Workers       Lifecycle, Tokens, Outputs started, heartbeat, completed, callback
//	Admission     Lifecycle                  states Pending and Queued
//	Conditions    Lifecycle                  states Condition* and Action*
//	Launches      Machines, Tokens, Outputs  state ContainerCreating
//	Supervision   Machines                   states Running, Cancelling, Reconciling
//	Termination   Machines, Outputs, Logs    state Terminating
//	Sweeper       Machines, Outputs          reconcile records with everything else
//
// A constructor takes all that its type needs. NewLifecycle takes what follows a commit of the
// process: the actions of jobs, the replicas of pools, and inference tasks. A process that
// leaves one of them to a sweep passes LeaveToSweep.
//
// The package knows no HTTP, no wire types, no SDK, no environment and no wall
// clock; see packages api and port.
package runs
