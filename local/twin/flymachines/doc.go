// Package flymachines is a Fly Machines API server whose machines are local
// processes.
//
//	fly-go ──HTTP──► Server ──Starter──► program
//	                   │                  (a process under a supervisor, or a
//	                   └─ machines/ID/     function of this process)
//	                        machine.json, root/, tmp/, output.*
//
// It is good enough for the real client: names that are unique among live
// machines, states, events and exit events in Fly's shapes, waits with Fly's
// limits, metadata filters, stop signals and grace, restart policies,
// auto_destroy, and machines that stay readable when they are gone. Where Fly
// lies or fails, so can this server (package faults).
//
// It promises that a machine whose creation was answered survives the server:
// each record is on disk before anyone sees it, and after kill -9 the next
// Open finds every machine and its exit code again, starts what was created and
// never started, and goes on with stops and destructions that were begun. Stop
// ends all machines first and records that it was asked to.
//
// It refuses leases, updates and so versions, volumes, services, checks, exec
// and suspension, and it does not hold a program to its memory or keep it from
// the host's files and network: it is for development and tests. One server
// owns a folder at a time.
package flymachines
