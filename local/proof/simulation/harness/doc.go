// Package harness runs Sortie's processes in virtual time, with injected faults. It has what all
// parts of a simulated world share.
//
//	base.go       the seed, its random numbers, the trace and the problems
//	clock.go      virtual time and coroutines
//	settings.go   the probabilities of faults, and the settings of the deployment
//	kinds.go      the kinds of worlds, by seed
//	outages.go    long failures
//	process.go    starts, calls, crashes and sweeps of the processes
//	local.go      the home of SQLite and the local engine; aws.go: the home of the services of AWS
//	store.go      calls of the store, executions.go, buckets.go, hooks.go and schedules.go of the rest
//	records.go    the runs as they were at the last check
//
// It knows no machine, job or webhook. What happens is reported to a Watch. Calls run as
// coroutines on one thread: while a call waits, others run.
package harness
