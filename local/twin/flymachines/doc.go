// Package flymachines is a server of the Fly Machines API whose machines are
// local processes.
//
//	fly-go ──HTTP──► Server ──Starter──► program
//	                   │                  (a process under a supervisor, or a
//	                   └─ machines/ID/     function of this process)
//	                        machine.json, root/, tmp/, output.*
//
// It implements what the real client uses: names that are unique among live
// machines, states, events and exit events in Fly's shapes, waits with Fly's
// limits, metadata filters, stop signals and grace, restart policies,
// auto_destroy, and destroyed machines that stay readable. It can reproduce
// Fly's faults (package faults).
//
// A machine whose creation was answered survives the server. Each record is in its file before
// a client can see it. A loss of power ends all machines and may lose the records of the last
// seconds; the machines of lost records no longer exist. After kill -9, Open restores every
// machine and its exit code, and resumes pending stops and destructions. A record found in the
// folder never starts a program, because another user could have placed it there. If the
// machine was created and not started, its start is cancelled as if a stop was requested. Stop
// ends all machines first and records that their stop was requested.
//
// An update changes only a stopped machine; Fly would also replace a running one. An image is a
// program of the host, and the image's digest is the program's. Leases, volumes, services,
// checks, exec and suspension are not implemented. The server neither limits a program's memory
// nor isolates it from the host's files and network: it is for development and tests. One
// server owns a folder at a time.
package flymachines
