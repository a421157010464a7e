// Package supervisor runs one program of a machine and outlives the process
// that started it.
//
//	server ──Launch──► supervisor ──► program and its descendants
//	   ▲                  │ lock        │
//	   └──────Wait────────┤ start.json  └─ output.*
//	                      └ exit.json
//
// The supervisor is sortie-exec, or the server's executable, run in its own session. If the
// program is that of a job, the supervisor is its wrapper, too (package wrap): one process
// beside the program, which gets the signals that a wrapper gets. It holds
// a lock on the machine's directory while it lives, records the start before
// and after it happens and the end once it is known, stores the output, and
// kills everything that the program has started (package proctree). So a later
// process, including a server that was killed and restarted, finds the program or
// its exit code in the directory.
//
// One start happens at most once. If a supervisor is killed, its program is
// killed, too: on Linux by the kernel, elsewhere by the process that waits for
// it. That process also kills the rest: the members of the start's cgroup, or
// without one the processes that inherited the start's mark in their environment.
// A process is signalled only if its number and its birth are those that were read.
// The package does not restart programs; that is the server's decision.
//
// All supervisors have one end of a pipe that closes with their server. A wrapper that has lost
// its server ends with its program, unless the program has an output file to deliver.
//
// A server that kills a wrapper kills all its descendants with it, so it needs no mark.
//
// A process escapes in two cases. Without a cgroup: another one kills the supervisor, and the
// process has cleared its environment and lost its parents. On macOS: it leaves
// the process group of its program.
package supervisor
