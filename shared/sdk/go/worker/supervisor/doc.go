// Package supervisor runs one program of a machine and outlives the process
// that started it.
//
//	server ──Launch──► supervisor ──► program and its descendants
//	   ▲                  │ lock        │
//	   └──────Wait────────┤ start.json  └─ output.*
//	                      └ exit.json
//
// The supervisor is sortie-exec, or the server's executable, run in its own session. If the
// program belongs to a job, the supervisor is also its wrapper (package wrap), which receives
// the signals. So there is only one process beside the program. The supervisor holds a lock on
// the machine's directory while it lives. It records the start before and after it happens, and
// the end when it is known. It stores the output, and kills everything that the program has
// started (package proctree). So a later process, including a server that was killed and
// restarted, finds the program or its exit code in the directory.
//
// One start happens at most once. If a supervisor is killed, its program is killed too: on
// Linux by the kernel, elsewhere by the process that waits for the supervisor. That process
// also kills the rest: the members of the start's cgroup, or without a cgroup the processes
// that inherited the start's mark in their environment. A process is signalled only if its
// number and its birth are those that were read. The package does not restart programs. The
// server does.
//
// All supervisors have one end of a pipe that closes with their server. A wrapper whose server
// is gone ends with its program, unless the program has an output file to deliver.
//
// A server that kills a wrapper also kills all its descendants, so it needs no mark.
//
// A process escapes in two cases. Without a cgroup: another process kills the supervisor, and
// the escaping process has cleared its environment and lost its parents. On macOS: it leaves
// the process group of its program.
package supervisor
