// Package capacity has what the runs of a simulated world compete for, and checks who gets it.
//
//	pools.go, mixed.go      pools, their operators, limits and drains; use.go: the slots in use
//	queues.go, turns.go     the order of the queues of pools and keys
//	fallbacks.go            fallbacks to other pools
//	warmpools.go            pools with warm machines; warmchecks.go, recyclechecks.go: their machines
//	replicas.go             pools of engines with replicas; replicachecks.go, replicatasks.go: theirs
//	facts.go                observations about runs besides their records
package capacity
