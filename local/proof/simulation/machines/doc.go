// Package machines has the simulated platforms, their machines, and the workers in them.
//
//	machines.go       what is known of a machine, and what is checked
//	provider.go       Fly; warmmachines.go and recycling.go: its warm machines
//	cluster.go        a Kubernetes cluster
//	containers.go     a container engine
//	platforms.go      the runner that dispatches to several platforms
//	workers.go        processes that only call back; contractworker.go: those of the worker contract
//	calls.go          their calls of the real HTTP handlers, which are lost, repeated and late
//
// Machines stay in creation, start late or never, are stopped by strangers and report exits late.
// Whatever happens to a machine is reported to Checks, which compare it with the records.
package machines
