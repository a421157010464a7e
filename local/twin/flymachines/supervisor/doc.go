// Package supervisor runs one program of a machine and outlives the process
// that started it.
//
//	server ──Launch──► supervisor ──► program, in a process group of its own
//	   ▲                  │ lock        │
//	   └──────Wait────────┤ start.json  └─ output.*
//	                      └ exit.json
//
// The supervisor is the same executable, run again in its own session. It holds
// a lock on the machine's directory while it lives, records the start before
// and after it happens and the end once it is known, stores the output, and
// kills what the program leaves in its group. So a later process, including a
// server that was killed and restarted, finds the program or its exit code in
// the directory.
//
// One start happens at most once. If a supervisor is killed, its program is
// killed, too: on Linux by the kernel, elsewhere by the process that waits for
// it. A process is signalled only if its number and its birth are the recorded
// ones. The package does not restart programs; that is the server's decision.
// It cannot reach a program that leaves its process group.
package supervisor
